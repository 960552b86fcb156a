package ui

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// whyModel explains why a pod has its address or none.
type whyModel struct {
	Pod, Node string
	Facts     view.Facts
	Next      view.Steps
	Lacks     bool
	Addresses []lease.Lease
	Leases    rows[lease.Lease] // that name the pod
	Asked     bool
	// Problem is why there is no explanation, with a hint; may be empty.
	Problem, Hint string
}

// whyPage shows the form for a pod, and the explanation or why there is none.
func whyPage(ctx context.Context, q *request) (*page, error) {
	m := whyModel{Pod: q.URL.Query().Get("pod"), Node: q.URL.Query().Get("node")}
	p := &page{Title: "Why", Here: "why"}
	if m.Pod != "" {
		switch err := m.explain(ctx, q); {
		case apierrors.IsUnauthorized(err):
			return nil, err
		case err != nil:
			m.Problem, m.Hint, p.Status = problem(q.App, err)
		}
	}
	return p, q.sections(p, m, "why")
}

func (m *whyModel) explain(ctx context.Context, q *request) error {
	word := resource.PodWord(m.Pod)
	if !strings.Contains(word, "/") {
		if all := view.PodsNamed(ctx, q.App, word); len(all) == 1 {
			word = all[0]
		}
	}
	in := resource.InNamespace{Name: metav1.NamespaceDefault}
	key, err := in.Key(word)
	if err != nil {
		return err
	}
	e, err := view.Explain(ctx, q.App, key, m.Node)
	if err != nil {
		return err
	}
	m.Asked, m.Lacks, m.Addresses, m.Pod = true, e.Lacks(), e.Addresses, key.String()
	m.Leases = rowsOf(q, "why", e.Leases)
	m.Facts, m.Next = e.Facts(q.App)
	return nil
}

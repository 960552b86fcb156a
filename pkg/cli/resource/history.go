package resource

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/history"
)

// HistoryParts are the BCSNetHistory objects of a period, the oldest first.
type HistoryParts struct {
	app   *app.App
	names []string
	// Begins is the beginning of the cluster's oldest part; zero if there is none.
	Begins time.Time
	// Missing says why the history cannot be read; else empty.
	Missing string
}

// ReadHistoryParts lists the parts with records of since or later. It reads only names. If the cluster has no history
// or the user may not list it, that is not an error, but stored in Missing.
func ReadHistoryParts(ctx context.Context, s *app.App, since time.Time) (*HistoryParts, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	c, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	p := &HistoryParts{app: s}
	for options := (metav1.ListOptions{Limit: PageSize}); ; {
		page, err := c.Resource(Of(v1.HistoryResource)).List(ctx, options)
		switch {
		case apierrors.IsNotFound(err):
			p.Missing = "the cluster has no " + v1.HistoryResource + ", so this is what addresses remember themselves"
			return p, nil
		case apierrors.IsForbidden(err):
			p.Missing = "you may not list " + v1.HistoryResource + ", so this is what addresses remember themselves"
			return p, nil
		case err != nil:
			return nil, Explain(s, err)
		}
		for _, o := range page.Items {
			p.names = append(p.names, o.Name)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	slices.Sort(p.names)
	if len(p.names) > 0 {
		p.Begins, _ = history.Begins(p.names[0]) // zero if the name has no time
	}
	p.names = history.From(p.names, since)
	return p, nil
}

// Back calls fn with the records of each part, the newest part first, until fn returns false. It keeps one part in
// memory at a time. It skips parts that have been deleted since.
func (p *HistoryParts) Back(ctx context.Context, fn func([]history.Record) bool) error {
	c, err := p.app.Dynamic()
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(p.names) {
		u, err := c.Resource(Of(v1.HistoryResource)).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return Explain(p.app, err)
		}
		var part v1.BCSNetHistory
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &part); err != nil {
			return fmt.Errorf("part %s of the history cannot be read: %w", name, err)
		}
		records := make([]history.Record, 0, min(max(int(part.Records), 0), 1<<16))
		err = history.Read(part.Data, func(r history.Record) error {
			records = append(records, r)
			return nil
		})
		if err != nil {
			p.app.Say.Warn("part %s of the history cannot be read: %v", name, err)
		}
		if !fn(records) {
			return nil
		}
	}
	return nil
}

// SayGaps warns of gaps.
func SayGaps(s *app.App, gaps []history.Record) {
	for _, g := range gaps {
		s.Say.Warn("changes between %s and %s may be missing: %s", TimeText(g.Since), TimeText(g.Time), g.Reason)
	}
}

package view

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// mostPods bounds the pods of one name in different namespaces.
const mostPods = 100

// PodsNamed returns the existing pods, as NAMESPACE/NAME, that have exactly a name: NAMESPACE/NAME, or NAME in any
// namespace. If pods cannot be read, it warns and returns none.
func PodsNamed(ctx context.Context, s *app.App, word string) (names []string) {
	word = resource.PodWord(word)
	in := resource.InNamespace{Name: metav1.NamespaceDefault}
	key, err := in.Key(word)
	if err != nil {
		return nil // nothing can have this name
	}
	c, err := s.Dynamic()
	if err != nil {
		return nil // nothing can be read, which whoever asks finds, too
	}
	if !strings.Contains(word, "/") {
		key.Namespace = metav1.NamespaceAll
	}
	found, err := c.Resource(resource.PodResource()).Namespace(key.Namespace).
		List(ctx, metav1.ListOptions{FieldSelector: equalTo("metadata.name", key.Name), Limit: mostPods})
	switch {
	case apierrors.IsForbidden(err):
		s.Say.Warn("you may not list pods, so pods without an address are not found")
		return nil
	case err != nil:
		s.Say.Warn("pods cannot be read, so those without an address are not found: %v", err)
		return nil
	}
	for _, o := range found.Items {
		names = append(names, o.GetNamespace()+"/"+o.GetName())
	}
	slices.Sort(names)
	return names
}

package controlplane

import (
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Told waits for an event in kube-system about an object, with some words in its message.
func Told(t testing.TB, c client.Reader, about, reason, words string) {
	t.Helper()
	Eventually(t, func() error {
		var list eventsv1.EventList
		if err := c.List(t.Context(), &list, client.InNamespace("kube-system")); err != nil {
			return err
		}
		var notes []string
		for _, e := range list.Items {
			if e.Regarding.Name != about || e.Reason != reason {
				continue
			}
			if strings.Contains(e.Note, words) {
				return nil
			}
			notes = append(notes, e.Note)
		}
		return fmt.Errorf("no event %s says %q, but %q", reason, words, notes)
	})
}

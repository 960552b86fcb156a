package resource

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// maxEvents bounds the events in a description.
const maxEvents = 10

// RecentEvents lists the newest events of the object with a UID, newest first. An empty namespace means all.
func RecentEvents(ctx context.Context, s *app.App, namespace string, uid types.UID) ([]Event, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	found, err := ListPages(ctx, c.Resource(EventResource()).Namespace(namespace), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("regarding.uid", string(uid)).String(),
	})
	if err != nil {
		return nil, err
	}
	var out []Event
	for _, item := range found {
		e, err := ReadEvent(&item)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Event) int {
		return cmp.Or(b.When.Compare(a.When), cmp.Compare(a.Reason,
			b.Reason))
	})
	return out[:min(len(out), maxEvents)], nil
}

// EventLines formats events for a section of a description.
func EventLines(s *app.App, events []Event) (lines []string) {
	for _, e := range events {
		reason := e.Reason
		if e.Type == corev1.EventTypeWarning {
			reason = s.Terminal.Paint(terminal.Yellow, reason)
		}
		text := fmt.Sprintf("  %s ago, %s: %s", s.Age(e.When), reason, s.Called(terminal.Visible(e.Note)))
		if e.Count > 1 {
			text += fmt.Sprintf(" (%d times)", e.Count)
		}
		lines = append(lines, text)
	}
	return lines
}

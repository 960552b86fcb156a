package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
)

// maxEvents is how many events a description shows.
const maxEvents = 10

// recentEvents are the newest events of an object, the newest first. Those of an earlier object of its name
// are not among them.
func (s *session) recentEvents(ctx context.Context, uid types.UID) ([]eventsv1.Event, error) {
	c, err := s.dynamic()
	if err != nil {
		return nil, err
	}
	found, err := c.Resource(eventsv1.SchemeGroupVersion.WithResource("events")).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("regarding.uid", string(uid)).String(),
	})
	if err != nil {
		return nil, err
	}
	var out []eventsv1.Event
	for _, item := range found.Items {
		var e eventsv1.Event
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &e); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b eventsv1.Event) int {
		return cmp.Or(lastSeen(b).Compare(lastSeen(a)), cmp.Compare(a.Reason, b.Reason))
	})
	return out[:min(len(out), maxEvents)], nil
}

// lastSeen is when an event last happened. Old clients fill the deprecated fields alone.
func lastSeen(e eventsv1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	case !e.DeprecatedLastTimestamp.IsZero():
		return e.DeprecatedLastTimestamp.Time
	default:
		return e.CreationTimestamp.Time
	}
}

// eventLines are events as a section of a description.
func (s *session) eventLines(events []eventsv1.Event) (lines []string) {
	for _, e := range events {
		reason := e.Reason
		if e.Type == corev1.EventTypeWarning {
			reason = s.out.paint(yellow, reason)
		}
		text := fmt.Sprintf("  %s ago, %s: %s", s.age(lastSeen(e)), reason, s.called(printers.EscapeTerminal(e.Note)))
		if e.Series != nil && e.Series.Count > 1 {
			text += fmt.Sprintf(" (%d times)", e.Series.Count)
		}
		lines = append(lines, text)
	}
	return lines
}

package resource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// Event is an Event with its last time and its count.
type Event struct {
	*eventsv1.Event
	Stored *unstructured.Unstructured
	When   time.Time
	Count  int32
}

// Object returns the event as stored.
func (e Event) Object() unstructured.Unstructured { return *e.Stored }

// ReadEvent decodes an event.
func ReadEvent(stored *unstructured.Unstructured) (Event, error) {
	e := Event{Event: &eventsv1.Event{}, Stored: stored, Count: 1}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, e.Event); err != nil {
		return e, fmt.Errorf("event %s cannot be read: %w", stored.GetName(), err)
	}
	switch {
	case e.Series != nil:
		e.When, e.Count = e.Series.LastObservedTime.Time, e.Series.Count
	case !e.DeprecatedLastTimestamp.IsZero(): // made by a client of the older API
		e.When, e.Count = e.DeprecatedLastTimestamp.Time, max(1, e.DeprecatedCount)
	case !e.EventTime.IsZero():
		e.When = e.EventTime.Time
	default:
		e.When = e.CreationTimestamp.Time
	}
	return e, nil
}

// EventGroupField selects events about our objects: its value is our group and version.
const EventGroupField = "regarding.apiVersion"

// maxEvents bounds the events in a description.
const maxEvents = 10

// ListEvents lists the events of a namespace that a field selector selects. An empty namespace means all.
func ListEvents(ctx context.Context, s *app.App, namespace, selector string) ([]Event, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	api := c.Resource(EventResource()).Namespace(namespace)
	return readAll(ctx, s, api, metav1.ListOptions{FieldSelector: selector}, ReadEvent)
}

// RecentEvents lists the newest events of the object with a UID, newest first. An empty namespace means all.
func RecentEvents(ctx context.Context, s *app.App, namespace string, uid types.UID) ([]Event, error) {
	out, err := ListEvents(ctx, s, namespace, fields.OneTermEqualSelector("regarding.uid", string(uid)).String())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b Event) int {
		return cmp.Or(b.When.Compare(a.When), cmp.Compare(a.Reason, b.Reason))
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

// NotAsTheyShould returns the conditions that report a problem.
func NotAsTheyShould(all []metav1.Condition) (bad []metav1.Condition) {
	for _, c := range all {
		good := metav1.ConditionFalse
		if c.Type == v1.ConditionReady || c.Type == v1.ConditionPreallocated {
			good = metav1.ConditionTrue
		}
		if c.Status != good {
			bad = append(bad, c)
		}
	}
	return bad
}

// ConditionLines formats the conditions that report a problem.
func ConditionLines(s *app.App, all []metav1.Condition) (lines []string) {
	for _, c := range NotAsTheyShould(all) {
		lines = append(lines, fmt.Sprintf("  %s=%s, %s: %s", c.Type, c.Status, c.Reason,
			s.Called(terminal.Visible(c.Message))))
	}
	return lines
}

package resource

import (
	"fmt"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Event is an Event with its last time and its count.
type Event struct {
	*eventsv1.Event
	Stored *unstructured.Unstructured
	When   time.Time
	Count  int32
}

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

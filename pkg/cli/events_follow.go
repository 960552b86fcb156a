package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// event is an Event, when it last happened, and how often it has.
type event struct {
	*eventsv1.Event
	stored *unstructured.Unstructured
	when   time.Time
	count  int32
}

func readEvent(stored *unstructured.Unstructured) (event, error) {
	e := event{Event: &eventsv1.Event{}, stored: stored, count: 1}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, e.Event); err != nil {
		return e, fmt.Errorf("event %s cannot be read: %w", stored.GetName(), err)
	}
	switch {
	case e.Series != nil:
		e.when, e.count = e.Series.LastObservedTime.Time, e.Series.Count
	case !e.DeprecatedLastTimestamp.IsZero(): // made by a client of the older API
		e.when, e.count = e.DeprecatedLastTimestamp.Time, max(1, e.DeprecatedCount)
	case !e.EventTime.IsZero():
		e.when = e.EventTime.Time
	default:
		e.when = e.CreationTimestamp.Time
	}
	return e, nil
}

// follow prints events as they happen. What was printed is printed again only when it happens again.
func (v *eventList) follow(ctx context.Context, api dynamic.ResourceInterface, found []event) error {
	ctx, quit := v.Quittable(ctx)
	defer quit()
	seen := map[string]int32{}
	for _, e := range found {
		seen[keyOf(e.stored)] = e.count
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	changes, ended := make(chan change), make(chan error, 1)
	all := newFollower(v.App, api, metav1.ListOptions{FieldSelector: v.selector()}, 0, changes)
	go func() { ended <- all.run(following) }()
	for {
		select {
		case err := <-ended:
			if ctx.Err() != nil { // the way to end it
				return nil
			}
			return err
		case c := <-changes:
			if err := v.take(c, seen); err != nil {
				return err
			}
		}
	}
}

func (v *eventList) take(c change, seen map[string]int32) error {
	switch c.kind {
	case watch.Added, watch.Modified:
		e, err := readEvent(c.object)
		if err != nil {
			return err
		}
		return v.fresh([]event{e}, seen)
	case watch.Deleted:
		delete(seen, c.name)
	default:
	}
	return nil
}

// fresh prints the events that were not printed as they are now.
func (v *eventList) fresh(found []event, seen map[string]int32) error {
	for _, e := range found {
		if !v.wants(e) || seen[keyOf(e.stored)] == e.count {
			continue
		}
		seen[keyOf(e.stored)] = e.count
		if err := v.write([]event{e}); err != nil {
			return err
		}
	}
	return nil
}

func (v *eventList) write(found []event) error {
	if v.output.Printer == nil {
		return v.table.Write(v.Out, found)
	}
	for _, e := range found {
		if err := v.output.Object(v.Out, e.stored); err != nil {
			return err
		}
	}
	return nil
}

func (v *eventList) columns() []printer.Column[event] {
	return []printer.Column[event]{
		{Name: "AGE", Least: 5, Cell: func(e event) string { return v.Age(e.when) }},
		{Name: "TYPE", Least: 7, Cell: func(e event) string {
			if e.Type == corev1.EventTypeWarning {
				return v.Terminal.Paint(terminal.Yellow, e.Type)
			}
			return e.Type
		}},
		{Name: "REASON", Least: 22, Cell: func(e event) string { return printers.EscapeTerminal(e.Reason) }},
		{Name: "OBJECT", Least: 12, Cell: objectText},
		{Name: "COUNT", Wide: true, Least: 5, Cell: func(e event) string { return strconv.Itoa(int(e.count)) }},
		{Name: "FROM", Wide: true, Least: 17, Cell: func(e event) string { return e.ReportingController }},
		{Name: "MESSAGE", Cell: func(e event) string { return v.Called(printers.EscapeTerminal(e.Note)) }},
	}
}

// objectText is what an event is about; of a claim it says the namespace, too.
func objectText(e event) string {
	text := strings.ToLower(e.Regarding.Kind) + "/" + e.Regarding.Name
	if e.Regarding.Kind == claimKind {
		text = strings.ToLower(e.Regarding.Kind) + "/" + e.Regarding.Namespace + "/" + e.Regarding.Name
	}
	return printers.EscapeTerminal(text)
}

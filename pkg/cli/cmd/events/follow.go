package events

import (
	"context"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// follow prints events as they happen. It prints an event again if its count changes.
func (v *eventList) follow(ctx context.Context, api dynamic.ResourceInterface, found []resource.Event) error {
	ctx, quit := v.Quittable(ctx)
	defer quit()
	seen := map[string]int32{}
	for _, e := range found {
		seen[resource.KeyOf(e.Stored)] = e.Count
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	changes, ended := make(chan follow.Change), make(chan error, 1)
	all := follow.NewFollower(v.App, api, metav1.ListOptions{FieldSelector: v.selector()}, 0, changes)
	go func() { ended <- all.Run(following) }()
	for {
		select {
		case err := <-ended:
			if ctx.Err() != nil { // the way to end it
				return nil
			}
			return err
		case c := <-changes:
			if err := v.apply(c, seen); err != nil {
				return err
			}
		}
	}
}

func (v *eventList) apply(c follow.Change, seen map[string]int32) error {
	switch c.Kind {
	case watch.Added, watch.Modified:
		e, err := resource.ReadEvent(c.Object)
		if err != nil {
			return err
		}
		return v.fresh([]resource.Event{e}, seen)
	case watch.Deleted:
		delete(seen, c.Name)
	default:
	}
	return nil
}

// fresh prints the events whose count has changed since they were printed.
func (v *eventList) fresh(found []resource.Event, seen map[string]int32) error {
	for _, e := range found {
		if !v.wants(e) || seen[resource.KeyOf(e.Stored)] == e.Count {
			continue
		}
		seen[resource.KeyOf(e.Stored)] = e.Count
		if err := v.write([]resource.Event{e}); err != nil {
			return err
		}
	}
	return nil
}

func (v *eventList) write(found []resource.Event) error {
	if v.output.Printer == nil {
		return v.table.Write(v.Out, found)
	}
	for _, e := range found {
		if err := v.output.Object(v.Out, e.Stored); err != nil {
			return err
		}
	}
	return nil
}

func (v *eventList) columns() []printer.Column[resource.Event] {
	return []printer.Column[resource.Event]{
		{Name: "AGE", Least: 5, Cell: func(e resource.Event) string { return v.Age(e.When) }},
		{Name: "TYPE", Least: 7, Cell: func(e resource.Event) string {
			if e.Type == corev1.EventTypeWarning {
				return v.Terminal.Paint(terminal.Yellow, e.Type)
			}
			return e.Type
		}},
		{Name: "REASON", Least: 22, Cell: func(e resource.Event) string { return e.Reason }},
		{Name: "OBJECT", Least: 12, Cell: objectText},
		{Name: "COUNT", Wide: true, Least: 5,
			Cell: func(e resource.Event) string { return strconv.Itoa(int(e.Count)) }},
		{Name: "FROM", Wide: true, Least: 17, Cell: func(e resource.Event) string { return e.ReportingController }},
		{Name: "MESSAGE", Cell: func(e resource.Event) string { return v.Called(e.Note) }},
	}
}

// objectText returns kind and name of an event's object, and the namespace of a claim.
func objectText(e resource.Event) string {
	text := strings.ToLower(e.Regarding.Kind) + "/" + e.Regarding.Name
	if e.Regarding.Kind == resource.ClaimKind {
		text = strings.ToLower(e.Regarding.Kind) + "/" + e.Regarding.Namespace + "/" + e.Regarding.Name
	}
	return text
}

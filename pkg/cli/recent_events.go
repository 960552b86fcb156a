package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// maxEvents is how many events a description shows.
const maxEvents = 10

// recentEvents are the newest events of an object, the newest first. Those of an earlier object of its name
// are not among them.
func recentEvents(ctx context.Context, s *app.App, uid types.UID) ([]event, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	found, err := listPages(ctx, c.Resource(eventResource()), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("regarding.uid", string(uid)).String(),
	})
	if err != nil {
		return nil, err
	}
	var out []event
	for _, item := range found {
		e, err := readEvent(&item)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b event) int { return cmp.Or(b.when.Compare(a.when), cmp.Compare(a.Reason, b.Reason)) })
	return out[:min(len(out), maxEvents)], nil
}

// eventLines are events as a section of a description.
func eventLines(s *app.App, events []event) (lines []string) {
	for _, e := range events {
		reason := e.Reason
		if e.Type == corev1.EventTypeWarning {
			reason = s.Terminal.Paint(terminal.Yellow, reason)
		}
		text := fmt.Sprintf("  %s ago, %s: %s", s.Age(e.when), reason, s.Called(printers.EscapeTerminal(e.Note)))
		if e.count > 1 {
			text += fmt.Sprintf(" (%d times)", e.count)
		}
		lines = append(lines, text)
	}
	return lines
}

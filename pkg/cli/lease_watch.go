package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// watch shows what the query finds, and then what changes. An address that the query no longer matches has left
// the list, like one whose object is gone; it is shown as it was in it.
func (q *leaseQuery) watch(ctx context.Context, s *app.App, o *printer.Output, columns []printer.Column[ipam.Lease], summary func(map[ipam.State]int) string) error {
	rows := make([]printer.Column[leaseRow], 0, len(columns))
	for _, c := range columns {
		rows = append(rows, printer.Column[leaseRow]{Name: c.Name, Wide: c.Wide, Least: c.Least, Cell: func(r leaseRow) string { return c.Cell(*r.Lease) }})
	}
	read := func(u *unstructured.Unstructured) (leaseRow, error) {
		l, err := readLease(u)
		if err != nil || o.Printer == nil {
			u = nil // a table shows the lease
		}
		return leaseRow{Lease: &l, object: u}, err
	}
	show := func(w io.Writer, r leaseRow) error { return o.Object(w, r.object) }
	note := func(all []leaseRow) string {
		counts := map[ipam.State]int{}
		for _, r := range all {
			counts[r.State]++
		}
		return summary(counts)
	}
	from := source{kind: resource(v1.IPResource), which: metav1.ListOptions{FieldSelector: q.selector(), LabelSelector: q.labels}}
	return watchObjects(ctx, s, from, read, &watched[leaseRow]{
		view:    newView(s, o, rows, show, note),
		compare: func(a, b leaseRow) int { return a.Addr.Compare(b.Addr) },
		items:   map[string]leaseRow{},
	})
}

// countText says how many addresses there are, and in which states.
func countText(counts map[ipam.State]int) string {
	total := 0
	var parts []string
	for _, state := range []ipam.State{ipam.Active, ipam.Reserved, ipam.Available} {
		if n := counts[state]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if total == 0 {
		return "no addresses"
	}
	return humanize.Plural(total, "address") + ": " + strings.Join(parts, ", ")
}

// useText says how many addresses are in use.
func useText(counts map[ipam.State]int) string {
	return humanize.Plural(counts[ipam.Active], "address") + " in use"
}

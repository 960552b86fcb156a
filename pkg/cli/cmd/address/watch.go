package address

import (
	"context"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// watchLeases prints the addresses of the query, then each change. An address that the query no longer matches is shown
// as deleted, in its last matching state.
func watchLeases(
	ctx context.Context, q *resource.LeaseQuery, s *app.App, o *printer.Output, columns []printer.Column[lease.Lease],
	summary func(map[lease.State]int) string,
) error {
	rows := make([]printer.Column[resource.LeaseRow], 0, len(columns))
	for _, c := range columns {
		rows = append(rows, printer.Column[resource.LeaseRow]{
			Name: c.Name, Wide: c.Wide, Least: c.Least,
			Cell: func(r resource.LeaseRow) string { return c.Cell(*r.Lease) },
		})
	}
	read := func(u *unstructured.Unstructured) (resource.LeaseRow, error) {
		l, err := resource.ReadLease(u)
		if err != nil || o.Printer == nil {
			u = nil // a table shows the lease
		}
		return resource.LeaseRow{Lease: &l, Object: u}, err
	}
	show := func(w io.Writer, r resource.LeaseRow) error { return o.Object(w, r.Object) }
	note := func(all []resource.LeaseRow) string {
		counts := map[lease.State]int{}
		for _, r := range all {
			counts[r.State]++
		}
		return summary(counts)
	}
	from := follow.Source{
		Kind: resource.Of(v1.IPResource), Which: metav1.ListOptions{FieldSelector: q.Selector(),
			LabelSelector: q.Labels},
	}
	return follow.WatchObjects(ctx, s, from, read, &follow.Watched[resource.LeaseRow]{
		View:    follow.NewView(s, o, rows, show, note),
		Compare: func(a, b resource.LeaseRow) int { return a.Addr.Compare(b.Addr) },
		Shows:   func(r resource.LeaseRow) bool { return q.Word == "" || q.Statuses.Is(*r.Lease, q.Word) },
		Items:   map[string]resource.LeaseRow{},
	})
}

func countText(counts map[lease.State]int) string {
	total := 0
	var parts []string
	for _, state := range []lease.State{lease.Active, lease.Reserved, lease.Available} {
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

func useText(counts map[lease.State]int) string {
	return humanize.Plural(counts[lease.Active], "address") + " in use"
}

package address

import (
	"context"
	"net/netip"
	"runtime/debug"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// tally counts what a query found.
type tally struct {
	counts map[lease.State]int
	// cooling counts Available addresses in cooldown, draining addresses that are no longer in their pool.
	cooling, draining int
	// late counts addresses that were printed out of order, unlisted the free addresses that were left out.
	late     int
	unlisted uint64
}

// printList prints the addresses of the query in order, each as soon as its place is known.
func printList(
	ctx context.Context, q *resource.LeaseQuery, s *app.App, o *printer.Output, columns []printer.Column[lease.Lease],
) (tally, error) {
	// The command waits for the API server, so it can spend processor time to save memory.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	free, err := freeOf(ctx, q, s)
	if err != nil {
		return tally{}, err
	}
	l := &listing{
		output: o, table: &printer.GrowingTable[lease.Lease]{Table: printer.NewTable(o, columns)}, w: s.Out,
		stream: printer.NewListStream(o), status: q.Status, free: free, counts: map[lease.State]int{},
		statuses: q.Statuses,
	}
	asked := *q
	if free != nil {
		asked.Status = "" // addresses in use must be read, or they would be listed as free
	}
	rows := &sortStream{begin: func() nameOrder { return comingNames(ctx, q, s, free) }, emit: l.part}
	err = asked.Each(ctx, s, l.needsObjects(), func(r resource.LeaseRow) error {
		if q.Word != "" && !q.Statuses.Is(*r.Lease, q.Word) {
			return nil
		}
		r, err := l.read(r)
		if err != nil {
			return err
		}
		return rows.add(r)
	})
	if err != nil {
		return tally{}, err
	}
	late, err := rows.end()
	if err == nil { // an incomplete list gets no end
		err = l.end()
	}
	return tally{counts: l.counts, cooling: l.cooling, draining: l.draining, late: late, unlisted: free.unlisted()}, err
}

// comingNames returns the subnets from which addresses can come. If it returns none, rows wait until all have been
// read.
func comingNames(ctx context.Context, q *resource.LeaseQuery, s *app.App, free *freeAddresses) nameOrder {
	if free != nil {
		return nameOrder{subnets: []netip.Prefix{free.pool.Plan.Subnet}}
	}
	all, err := resource.AllPools(ctx, s)
	if err != nil {
		return nameOrder{}
	}
	var b netipx.IPSetBuilder
	for _, p := range all {
		if known := store.Pool(p.BCSNetPool); known.Valid() && (q.Pool == "" || q.Pool == p.Name) {
			b.AddPrefix(known.Plan.Subnet)
		}
	}
	set, err := b.IPSet()
	if err != nil {
		return nameOrder{}
	}
	return nameOrder{subnets: set.Prefixes()}
}

// remark prints how many addresses are out of order or were left out.
func (f tally) remark(s *app.App, pool string) {
	if f.late > 0 {
		s.Say.Warn("%s outside the subnets of all pools %s last", humanize.Plural(f.late, "address"),
			humanize.OneOr(f.late, "comes", "come"))
	}
	if f.unlisted > 0 {
		s.Say.Note("pool %s has %s more that nobody has used yet: too many to list", pool,
			humanize.Plural(f.unlisted, "address"))
	}
}

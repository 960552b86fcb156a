package address

import (
	"context"
	"errors"
	"net/netip"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// maxFree is the size of the largest pool whose free addresses without objects are listed.
const maxFree = 1 << 16

// freeAddresses iterates over the addresses of a pool that have no object yet, which are free. A nil one is empty.
type freeAddresses struct {
	pool ipam.Pool
	// elsewhere lists the addresses that are held for another pool. It is called at most once.
	elsewhere func() (map[netip.Addr]bool, error)
	held      map[netip.Addr]bool
	// next is the first unvisited address, to is the end of its range, and ranges are the following ones.
	next   netip.Addr
	to     netip.Addr
	ranges []netipx.IPRange
	// objects counts the addresses of the pool that have an object.
	objects uint64
}

// freeOf returns the free addresses without objects for a query of one pool. It returns nil if the query selects by
// something that only objects have.
func freeOf(ctx context.Context, q *resource.LeaseQuery, s *app.App) (*freeAddresses, error) {
	if q.Pool == "" || q.OnlyOutdated || q.Host+q.Namespace+q.Pod+q.Fields+q.Labels+q.Word != "" || q.Status != "" &&
		q.Status != lease.Available.String() {
		return nil, nil
	}
	api, err := resource.NewPools(s)
	if err != nil {
		return nil, err
	}
	p, err := api.Get(ctx, q.Pool)
	if f, ok := errors.AsType[*app.Failure](err); ok &&
		(f.Code == app.ExitUsage || f.Reason == app.ReasonPoolNotFound || f.Reason == ipam.ReasonForbidden) {
		return nil, nil // addresses of a pool that is gone or unreadable can still be listed
	}
	if err != nil {
		return nil, err
	}
	side, err := api.Side(ctx, p)
	if err != nil {
		return nil, err
	}
	known := side[p.Name]
	if !known.Valid() || known.Terminating {
		return nil, nil
	}
	f := newFree(known)
	f.elsewhere = func() (map[netip.Addr]bool, error) { return heldElsewhere(ctx, s, api, known) }
	return f, nil
}

func newFree(p ipam.Pool) *freeAddresses {
	f := &freeAddresses{pool: p}
	if !f.tooMany() {
		f.ranges = p.Plan.Usable.Ranges()
		f.advance()
	}
	return f
}

// tooMany reports whether the pool is larger than maxFree.
func (f *freeAddresses) tooMany() bool { return ipaddr.SizeOfSet(f.pool.Plan.Usable) > maxFree }

// unlisted counts the free addresses that tooMany left out.
func (f *freeAddresses) unlisted() uint64 {
	if f == nil || !f.tooMany() {
		return 0
	}
	return ipaddr.SizeOfSet(f.pool.Plan.Usable) - f.objects
}

// between inserts the free addresses less than below into sorted rows; all of them if below is not valid.
func (f *freeAddresses) between(rows []resource.LeaseRow, below netip.Addr) ([]resource.LeaseRow, error) {
	if f == nil {
		return rows, nil
	}
	for _, r := range rows {
		if f.pool.Plan.Usable.Contains(r.Addr) {
			f.objects++
		}
	}
	out := make([]resource.LeaseRow, 0, len(rows))
	for _, r := range rows {
		var err error
		if out, err = f.upTo(out, r.Addr); err != nil {
			return nil, err
		}
		if out = append(out, r); f.next == r.Addr {
			f.advance()
		}
	}
	return f.upTo(out, below)
}

// upTo appends the free addresses less than below.
func (f *freeAddresses) upTo(out []resource.LeaseRow, below netip.Addr) ([]resource.LeaseRow, error) {
	for f.next.IsValid() && (!below.IsValid() || f.next.Less(below)) {
		if f.held == nil {
			var err error
			if f.held, err = f.elsewhere(); err != nil {
				return nil, err
			}
		}
		if !f.held[f.next] {
			out = append(out, resource.LeaseRow{Lease: &lease.Lease{Addr: f.next, Params: f.pool.Params()}})
		}
		f.advance()
	}
	return out, nil
}

// advance moves to the next address of the pool.
func (f *freeAddresses) advance() {
	if f.next.IsValid() && f.next.Less(f.to) {
		f.next = f.next.Next()
		return
	}
	f.next = netip.Addr{}
	if len(f.ranges) > 0 {
		f.next, f.to, f.ranges = f.ranges[0].From(), f.ranges[0].To(), f.ranges[1:]
	}
}

// heldElsewhere returns the addresses of the pool that are held for an overlapping pool.
func heldElsewhere(ctx context.Context, s *app.App, api *resource.Pools, p ipam.Pool) (map[netip.Addr]bool, error) {
	held := map[netip.Addr]bool{}
	others, _, err := api.Others(ctx, p.Name)
	if err != nil {
		return nil, err
	}
	shared := false
	for _, o := range others {
		shared = shared || o.Plan.Subnet.IsValid() && o.Plan.Subnet.Overlaps(p.Plan.Subnet)
	}
	if !shared {
		return held, nil
	}
	query := resource.LeaseQuery{Selectors: resource.Selectors{Fields: "spec.pool!=" + p.Name + ",status.status!=" +
		lease.Available.String()}}
	return held, query.Each(ctx, s, false, func(r resource.LeaseRow) error {
		if p.Plan.Usable.Contains(r.Addr) {
			held[r.Addr] = true
		}
		return nil
	})
}

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

// maxFree is the size of the largest pool whose free addresses are listed without having objects.
const maxFree = 1 << 16

// freeAddresses holds the addresses of a pool that have no object yet and so are free: large pools make objects on
// demand. A nil one knows none.
type freeAddresses struct {
	pool ipam.Pool
	// elsewhere asks once for those that are held in the name of another pool.
	elsewhere func() (map[netip.Addr]bool, error)
	held      map[netip.Addr]bool
	// next is the first that was not looked at yet; ranges are those that follow its own.
	next   netip.Addr
	to     netip.Addr
	ranges []netipx.IPRange
	// objects counts the addresses of the pool that have one.
	objects uint64
}

// freeOf returns the free addresses that belong to what the query finds: those of one pool, unless it asks for what
// only addresses with an object have.
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
		return nil, nil // addresses of such a name may still be there, and can be listed
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

// tooMany reports whether the pool is too large for its free addresses to be listed.
func (f *freeAddresses) tooMany() bool { return ipaddr.SizeOfSet(f.pool.Plan.Usable) > maxFree }

// unlisted counts the free addresses that were left out.
func (f *freeAddresses) unlisted() uint64 {
	if f == nil || !f.tooMany() {
		return 0
	}
	return ipaddr.SizeOfSet(f.pool.Plan.Usable) - f.objects
}

// between puts the free addresses below one (all when it is not valid) between rows that are in order.
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

// upTo appends the free addresses below one.
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

// advance goes to the next address of the pool.
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

// heldElsewhere returns the addresses that are held in the name of another pool of the same addresses.
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

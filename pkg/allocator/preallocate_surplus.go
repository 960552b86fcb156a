package allocator

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// giveBackVoid gives back what was just taken for a claim that is gone by now.
func (s *Stocker) giveBackVoid(ctx context.Context, r Preallocation, taken []lease.Lease) (void bool, err error) {
	if void, err = r.Void(ctx); err != nil {
		return false, readFailed(err)
	}
	if void {
		err = s.giveBack(ctx, taken)
	}
	return void, err
}

// giveBack frees what was just taken, unless a pod was faster.
func (s *Stocker) giveBack(ctx context.Context, taken []lease.Lease) error {
	for _, l := range taken {
		if _, err := FreeLease(ctx, s.engine.leases, l, lease.Change{},
			func(now lease.Lease) bool { return now.IsRetained() && now.Updated.Equal(l.Updated) }); err != nil {
			return err
		}
	}
	return nil
}

// giveBackTime is the time after the end of its caller's wait in which a preallocation still looks whether it took too
// many.
const giveBackTime = 5 * time.Second

// lasting returns a context that ends some time after another.
func lasting(ctx context.Context, more time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() { time.AfterFunc(more, cancel) })
	return longer, func() { unhook(); cancel() }
}

// giveBackSurplus waits until the watch has delivered the addresses that were just taken, and with them whatever was
// written before, and gives back those that the claim had no more need for by then: all callers agree on them.
func (s *Stocker) giveBackSurplus(ctx context.Context, r Preallocation, taken []lease.Lease) error {
	ctx, cancel := lasting(ctx, giveBackTime)
	defer cancel()
	var version uint64
	for _, l := range taken {
		version = max(version, l.Version)
	}
	if err := s.engine.index.Feed.WaitSeen(ctx, version); err != nil {
		return ipam.Refuse(ipam.ReasonUnavailable, "the watch did not deliver what was taken for claim %s in time",
			r.Claim).
			WithHint("ask again")
	}
	if s.stock(r).Has <= r.Size {
		return nil
	}
	over := surplusOf(s.engine.index.Leases.ByClaim(r.Claim), r.Size)
	return s.giveBack(ctx, slices.DeleteFunc(over, func(l lease.Lease) bool {
		return !slices.ContainsFunc(taken, func(mine lease.Lease) bool {
			return mine.Addr == l.Addr && mine.Version == l.Version
		})
	}))
}

// surplusOf returns the addresses that a claim keeps beyond its size: of each family those that were written last. What
// pods have counts first.
func surplusOf(all []lease.Lease, size int) (over []lease.Lease) {
	all = slices.SortedFunc(slices.Values(all), func(a, b lease.Lease) int {
		return cmp.Or(cmp.Compare(b2i(a.IsRetained()), b2i(b.IsRetained())), cmp.Compare(a.Version, b.Version))
	})
	n := map[ipaddr.Family]int{}
	for _, l := range all {
		f := ipaddr.FamilyOf(l.Addr)
		if n[f]++; n[f] > size && l.IsRetained() {
			over = append(over, l)
		}
	}
	return over
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

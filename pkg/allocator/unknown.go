package allocator

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// doubt keeps an address for those of a key whose write of it has an unknown outcome, unless the watch has
// brought the outcome already: the write was for the believed version alone.
func (a *Allocator) doubt(key string, believed ipam.Lease) {
	if failpoint.Broken("doubt") {
		a.index.Forget(believed.Addr)
		return
	}
	a.index.MarkUnknown(believed.Addr, believed.Version, key, a.leases.Now())
	if l, ok := a.index.Get(believed.Addr); ok && l.Epoch == believed.Epoch {
		a.index.Settle(believed.Addr, l.Version)
	}
}

// doubtLife bounds how long the outcome of a write stays open. It is longer than the API server's own request timeout of
// one minute.
const doubtLife = 70 * time.Second

// settleDoubts finds out what became of writes of unknown outcome for an attachment, or a claim. One that was
// not stored may still arrive; asking for the same address again makes sure that only one of the two
// writes can.
func (a *Allocator) settleDoubts(ctx context.Context, key string) (prefer []netip.Addr, err error) {
	doubts := a.index.Unknown(key)
	for _, addr := range inOrder(doubts) {
		live, err := a.leases.Get(ctx, addr)
		switch {
		case errors.Is(err, store.ErrNotFound):
			prefer = append(prefer, addr)
		case err != nil:
			return nil, readFailed(err) // all stay in doubt: the next call prefers them, too
		case live.State == ipam.Available:
			prefer = append(prefer, addr)
			fallthrough
		default:
			a.index.Wrote(live)
		}
	}
	for addr := range doubts {
		a.index.Forget(addr)
	}
	return prefer, nil
}

// forgetDoubts ends doubts that are so old that the write cannot arrive any more.
func (a *Allocator) forgetDoubts(ctx context.Context) {
	doubts := a.index.Unknown("")
	for _, addr := range inOrder(doubts) {
		if a.leases.Now().Sub(doubts[addr].Since) < doubtLife {
			continue
		}
		live, err := a.leases.Get(ctx, addr)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			continue
		default:
			a.index.Wrote(live)
		}
		a.index.Forget(addr)
	}
}

package allocator

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// markUnknown keeps an address for a key whose write of it has an unknown outcome, unless the watch has delivered the
// outcome already: the write was for the believed version alone.
func (a *Allocator) markUnknown(key string, believed lease.Lease) {
	if failpoint.Broken("doubt") {
		a.index.Forget(believed.Addr)
		return
	}
	a.index.MarkUnknown(believed.Addr, believed.Version, key, a.leases.Now())
	if l, ok := a.index.Leases.Get(believed.Addr); ok && l.Epoch == believed.Epoch {
		a.index.Settle(believed.Addr, l.Version)
	}
}

// unknownLife bounds how long the outcome of a write stays unknown. It is longer than the API server's own request
// timeout of one minute.
const unknownLife = 70 * time.Second

// resolveUnknown finds out what became of writes of unknown outcome for an attachment, or a claim. It returns the
// addresses whose write was not stored, and may still arrive: asking for the same address again makes sure that only
// one of the two writes can be stored.
func (a *Allocator) resolveUnknown(ctx context.Context, key string) (prefer []netip.Addr, err error) {
	writes := a.index.Unknown(key)
	for _, addr := range inOrder(writes) {
		live, err := a.leases.Get(ctx, addr)
		switch {
		case errors.Is(err, store.ErrNotFound):
			prefer = append(prefer, addr)
		case err != nil:
			return nil, readFailed(err) // all stay unknown: the next call prefers them, too
		case live.State == lease.Available:
			prefer = append(prefer, addr)
			fallthrough
		default:
			a.index.Feed.Wrote(live)
		}
	}
	for addr := range writes {
		a.index.Forget(addr)
	}
	return prefer, nil
}

// forgetUnknown ends the waiting for writes that are so old that they cannot arrive any more.
func (a *Allocator) forgetUnknown(ctx context.Context) {
	writes := a.index.Unknown("")
	for _, addr := range inOrder(writes) {
		if a.leases.Now().Sub(writes[addr].Since) < unknownLife {
			continue
		}
		live, err := a.leases.Get(ctx, addr)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			continue
		default:
			a.index.Feed.Wrote(live)
		}
		a.index.Forget(addr)
	}
}

package allocator

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// writer writes picked addresses, and keeps those of which the outcome of a write is unknown.
type writer struct{ engine *engine }

// markUnknown keeps an address for a key whose write of it has an unknown outcome, unless the watch has delivered the
// outcome already: the write was only for the believed version.
func (w *writer) markUnknown(key string, believed lease.Lease) {
	if failpoint.Broken("doubt") {
		w.engine.index.Forget(believed.Addr)
		return
	}
	w.engine.index.MarkUnknown(believed.Addr, believed.Version, key, w.engine.leases.Now())
	if l, ok := w.engine.index.Leases.Get(believed.Addr); ok && l.Epoch == believed.Epoch {
		w.engine.index.Settle(believed.Addr, l.Version)
	}
}

// unknownLife bounds how long the outcome of a write stays unknown. It is longer than the API server's own request
// timeout of one minute.
const unknownLife = 70 * time.Second

// resolveUnknown finds out what became of writes of unknown outcome for an attachment, or a claim. It returns the
// addresses whose write was not stored, and may still arrive: asking for the same address again makes sure that only
// one of the two writes can be stored.
func (w *writer) resolveUnknown(ctx context.Context, key string) (prefer []netip.Addr, err error) {
	writes := w.engine.index.Unknown(key)
	for _, addr := range inOrder(writes) {
		live, err := w.engine.leases.Get(ctx, addr)
		switch {
		case errors.Is(err, store.ErrNotFound):
			prefer = append(prefer, addr)
		case err != nil:
			return nil, readFailed(err) // all stay unknown: the next call prefers them, too
		case live.State == lease.Available:
			prefer = append(prefer, addr)
			fallthrough
		default:
			w.engine.index.Feed.Wrote(live)
		}
	}
	for addr := range writes {
		w.engine.index.Forget(addr)
	}
	return prefer, nil
}

// forgetUnknown ends the waiting for writes that are so old that they cannot arrive any more.
func (w *writer) forgetUnknown(ctx context.Context) {
	writes := w.engine.index.Unknown("")
	for _, addr := range inOrder(writes) {
		if w.engine.leases.Now().Sub(writes[addr].Since) < unknownLife {
			continue
		}
		live, err := w.engine.leases.Get(ctx, addr)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			continue
		default:
			w.engine.index.Feed.Wrote(live)
		}
		w.engine.index.Forget(addr)
	}
}

// forget ends the assumptions of picks that are not written.
func (w *writer) forget(picks []ipam.Pick) {
	for _, p := range picks {
		w.engine.index.Forget(p.Current.Addr)
	}
}

// swap commits an allocation. Whoever asked is answered after it, never before.
func (w *writer) swap(ctx context.Context, believed, next lease.Lease) (lease.Lease, error) {
	if failpoint.Broken("write") { // answered before it is written
		time.AfterFunc(2*time.Millisecond, func() { _, _ = w.engine.leases.Write(context.WithoutCancel(ctx), next) })
		return next, nil
	}
	return w.engine.leases.Swap(ctx, believed, next)
}

// write writes what a picked address becomes, where that may be, and ends its assumption. Where the outcome is
// unknown, the address is kept for the key.
func (w *writer) write(
	ctx context.Context, key string, believed, next lease.Lease, ok bool,
) (lease.Lease, error) {
	addr := believed.Addr
	if !ok || ctx.Err() != nil {
		w.engine.index.Forget(addr)
		if err := ctx.Err(); err != nil {
			return next, unavailable(err)
		}
		return next, errStale
	}
	stored, err := w.swap(ctx, believed, next)
	if errors.Is(err, store.ErrUnknown) {
		w.markUnknown(key, believed)
		return next, unknown(addr, err)
	}
	w.engine.index.Forget(addr)
	switch {
	case errors.Is(err, store.ErrConflict):
		return stored, errStale
	case err != nil:
		return stored, writeFailed(err)
	}
	return stored, nil
}

package allocator

import (
	"context"
	"errors"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// commit writes the picked addresses as leases of the request, and ends their assumptions.
func (a *Allocator) commit(ctx context.Context, t *attempt) error {
	h := t.holder
	if n := len(t.held) + len(t.picks); n > 1 {
		h.SetSize = n
	}
	for i, p := range t.picks {
		h.Slot, h.AddressNamed, h.Given = p.Slot, t.asksFor(p.Current.Addr), a.give(t, p.Current.Addr, p.Pool)
		next, ok := lease.Bind(p.Current, p.Pool.Params(), h, t.constraints.Retention, a.leases.Now())
		stored, err := a.writePicked(ctx, t.key(), p.Current, next, ok)
		if err != nil {
			a.forget(t.picks[i+1:])
			return err
		}
		if t.held = append(t.held, stored); p.Current.State == lease.Available {
			t.fresh = append(t.fresh, stored)
		}
	}
	return nil
}

// forget ends the assumptions of picks that are not written.
func (a *Allocator) forget(picks []ipam.Pick) {
	for _, p := range picks {
		a.index.Forget(p.Current.Addr)
	}
}

// swap commits an allocation. Whoever asked is answered after it, never before.
func (a *Allocator) swap(ctx context.Context, believed, next lease.Lease) (lease.Lease, error) {
	if failpoint.Broken("write") { // answered before it is written
		time.AfterFunc(2*time.Millisecond, func() { _, _ = a.leases.Write(context.WithoutCancel(ctx), next) })
		return next, nil
	}
	return a.leases.Swap(ctx, believed, next)
}

// writePicked writes what a picked address becomes, where that may be, and ends its assumption. Where the outcome is
// unknown, the address is kept for the key.
func (a *Allocator) writePicked(
	ctx context.Context, key string, believed, next lease.Lease, ok bool,
) (lease.Lease, error) {
	addr := believed.Addr
	if !ok || ctx.Err() != nil {
		a.index.Forget(addr)
		if err := ctx.Err(); err != nil {
			return next, unavailable(err)
		}
		return next, errStale
	}
	stored, err := a.swap(ctx, believed, next)
	if errors.Is(err, store.ErrUnknown) {
		a.markUnknown(key, believed)
		return next, unknown(addr, err)
	}
	a.index.Forget(addr)
	switch {
	case errors.Is(err, store.ErrConflict):
		return stored, errStale
	case err != nil:
		return stored, writeFailed(err)
	}
	return stored, nil
}

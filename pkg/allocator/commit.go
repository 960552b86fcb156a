package allocator

import (
	"context"
	"errors"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// commit gives one picked address to the request, and ends its assumption.
func (a *Allocator) commit(ctx context.Context, r Request, h ipam.Holder, p ipam.Pick) (ipam.Lease, error) {
	h.Slot = p.Slot
	next, ok := ipam.Bind(p.Current, p.Pool.Params(), h, r.constraints.Retention, a.leases.Now())
	return a.writePicked(ctx, r.key(), p.Current, next, ok)
}

// writePicked writes what a picked address becomes, where that may be, and ends its assumption, unless the outcome is in
// doubt: then it is kept for the key.
func (a *Allocator) writePicked(ctx context.Context, key string, believed, next ipam.Lease, ok bool) (ipam.Lease, error) {
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
		a.doubt(key, believed)
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

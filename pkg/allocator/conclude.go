package allocator

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// conclude gives back what the request took if a DEL has overtaken it. Else it moves the start of an owner's leases
// forward.
func (a *Adder) conclude(ctx context.Context, t *attempt) error {
	if a.engine.overtaken(t) {
		return a.undo(ctx, t.Request, t.held)
	}
	return a.renew(ctx, t.Request, t.held)
}

// undo releases the addresses that a request took although a DEL had overtaken it, and refuses the request. It leaves
// the addresses that an earlier request gave to the holder: if the DEL concerns them, the DEL itself releases them.
func (a *Adder) undo(ctx context.Context, r Request, held []lease.Lease) error {
	for _, l := range held {
		if !r.tookItself(l) {
			continue
		}
		if err := a.engine.releaseOvertaken(ctx, l); err != nil {
			return err
		}
	}
	return deleted(r)
}

// renew moves the start of leases that an owner held before forward to a request that began later. A DEL that came
// between the two may be known to another replica that does not know the lease yet: it would take the lease for one
// that the DEL overtook. A container is not asked for again after its DEL; an owner is.
func (a *Adder) renew(ctx context.Context, r Request, held []lease.Lease) error {
	if r.Owner == "" {
		return nil
	}
	for _, l := range held {
		next, later := lease.Renew(l, r.StartedAt)
		if !later {
			continue
		}
		if err := ctx.Err(); err != nil {
			return unavailable(err)
		}
		if _, err := a.engine.leases.Swap(ctx, l, next); err != nil {
			return swapFailed(l.Addr, err)
		}
	}
	return nil
}

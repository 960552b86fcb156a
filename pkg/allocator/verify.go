package allocator

import (
	"context"
	"errors"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// verify makes sure that what an attachment holds is still the request's. It is asked once for the whole attachment: no
// lease changes before all of them are found to be of the request's pod, and what stays as it is, is read at once. A
// newer container of the same pod takes the other leases over, by one write each, unless nothing new is given now.
func (a *Adder) verify(ctx context.Context, t *attempt, held []lease.Lease) ([]lease.Lease, error) {
	if i := slices.IndexFunc(held, func(l lease.Lease) bool { return !t.isOf(l) && t.olderThan(l) }); i >= 0 {
		return nil, a.supersededBy(ctx, t.Request, held[i])
	}
	if slices.ContainsFunc(held, func(l lease.Lease) bool { return !t.isOf(l) }) {
		if refusal := a.engine.index.Moving(t.who()); refusal != nil {
			return nil, refusal
		}
	}
	if err := a.ofLivePod(ctx, t, held); err != nil {
		return nil, err
	}
	same := func(l lease.Lease) bool { return t.isOf(l) && l.PodUID == t.holder.PodUID }
	stored, err := a.engine.unchanged(ctx, slices.DeleteFunc(slices.Clone(held),
		func(l lease.Lease) bool { return !same(l) })...)
	if err != nil {
		return nil, err
	}
	verified := make([]lease.Lease, len(held))
	for i, l := range held {
		if same(l) {
			verified[i], stored = stored[0], stored[1:]
		} else if verified[i], err = a.rebind(ctx, t, l, len(held)); err != nil {
			return nil, err
		}
	}
	return verified, nil
}

// supersededBy refuses the request of a container in whose place a newer one has a lease.
func (a *Adder) supersededBy(ctx context.Context, r Request, l lease.Lease) error {
	if !slices.Contains(l.Superseded, r.ContainerID) { // else for good
		// The request's container may have the address since then, and be older only by the clock of the replica that
		// served the one before.
		if _, err := a.engine.unchanged(ctx, l); err != nil {
			return err
		}
	}
	return superseded(r, l)
}

// ofLivePod reads the pod from the API server if one of two UIDs is out of date, or if an address is about to move to
// another container on the word of the cache, whose pod may have been replaced by another of its name. It returns
// errStale for the lease of another pod.
func (a *Adder) ofLivePod(ctx context.Context, t *attempt, held []lease.Lease) error {
	h := &t.holder
	moves := func(l lease.Lease) bool { return !t.isOf(l) && t.PodUID == "" }
	if t.Owner != "" || failpoint.Broken("uid") || !slices.ContainsFunc(held, func(l lease.Lease) bool {
		return moves(l) || t.isOf(l) && l.PodUID != h.PodUID
	}) {
		return nil
	}
	pod, err := a.engine.pods.FindLive(ctx, t.Namespace, t.PodName, t.PodUID)
	if err := unfit(t.Request, pod, err); err != nil {
		return err
	}
	h.PodUID, h.Termination = pod.UID, pod.LongTermination()
	if slices.ContainsFunc(held, func(l lease.Lease) bool { return moves(l) && l.PodUID != h.PodUID }) {
		return errStale
	}
	return nil
}

// rebind writes a lease as the request's container has it, in place of an earlier one of its pod; together is the
// number of leases that it takes over.
func (a *Adder) rebind(ctx context.Context, t *attempt, l lease.Lease, together int) (lease.Lease, error) {
	bound := t.holder
	bound.AddressNamed, bound.Given = l.AddressNamed || t.asksFor(l.Addr), a.answers.giveAgain(t, l)
	if bound.SetSize, bound.Slot = l.SetSize, l.Slot; together > 1 {
		bound.SetSize = max(l.SetSize, together)
	}
	kept := t.constraints.RetentionFor(a.engine.index.Pools, l)
	if t.refused != nil {
		kept = l.Retention
	}
	next, ok := lease.Bind(l, l.Params, bound, kept, a.engine.leases.Now())
	if !ok {
		return l, ipam.Refuse(ipam.ReasonAddressInUse, "the object of address %s, which %s holds, is being deleted",
			l.Addr, t.who()).
			WithHint("ask again in a moment")
	}
	if err := ctx.Err(); err != nil {
		return l, unavailable(err)
	}
	stored, err := a.engine.leases.Swap(ctx, l, next)
	if errors.Is(err, store.ErrUnknown) {
		a.writer.markUnknown(t.key(), l)
	}
	if err != nil {
		return l, swapFailed(l.Addr, err)
	}
	return stored, nil
}

package allocator

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// takeOver gives the request's pod the addresses of the earlier pod of its place, beside those that it holds: of the
// pod that had the same claim and key, and is gone. While that pod is there the request is refused, unless the virtual
// machine in it migrates to the request's pod: then both have the address.
func (a *Allocator) takeOver(ctx context.Context, t *attempt) error {
	type passing struct{ from, to lease.Lease }
	want, all := t.want(t.held), []passing{}
	for _, l := range a.index.Leases.ByKey(t.constraints.Claim, t.constraints.PodPrimaryKey) {
		if slices.ContainsFunc(t.held, func(o lease.Lease) bool {
			return o.Addr.Is4() == l.Addr.Is4() &&
				o.Slot == l.Slot
		}) {
			continue
		}
		if t.families.Single() && len(all) > 0 && all[0].from.Addr.Is4() != l.Addr.Is4() {
			continue // the earlier pod had both
		}
		next, ok, err := a.successor(ctx, t, l)
		switch {
		case err != nil:
			return err
		case ok:
			all = append(all, passing{l, next})
		}
	}
	// None of them where the host may not have so many.
	assumed := map[netip.Addr]bool{}
	defer func() {
		for addr := range assumed {
			a.index.ForgetKey(addr, want.Key)
		}
	}()
	for _, p := range all {
		ours, refusal := a.index.AssumeTakeOver(want, p.from, a.leases.Now())
		if refusal != nil {
			return refusal
		}
		if ours {
			assumed[p.from.Addr] = true
		}
	}
	for _, p := range all {
		l := p.from
		if err := ctx.Err(); err != nil {
			return unavailable(err)
		}
		stored, err := a.leases.Swap(ctx, l, p.to)
		if errors.Is(err, store.ErrUnknown) {
			delete(assumed, l.Addr) // it stays
			a.markUnknown(t.key(), l)
		}
		if err != nil {
			return swapFailed(l.Addr, err)
		}
		if p.to.Other != nil && stored.Other == nil {
			return notKept(t, l)
		}
		message := "an address goes to the next pod of its key"
		if stored.Other != nil {
			message = "a virtual machine migrates: two pods have its address"
		}
		a.log.Info(message, "address", l.Addr.String(), "key",
			t.constraints.PodPrimaryKey, "earlier_pod", l.PodUID, "pod", t.holder.PodUID)
		t.held = append(t.held, stored)
	}
	return nil
}

// successor returns an address of the earlier pod of the request's place as its next pod has it; ok is false where the
// lease is no such address. An error refuses because the earlier pod is there, or is errStale.
func (a *Allocator) successor(ctx context.Context, t *attempt, l lease.Lease) (next lease.Lease, ok bool, err error) {
	params, ok, refusal := inherits(a.index, t.want(nil), t.holder, l)
	switch {
	case refusal != nil:
		return l, false, refusal
	case !ok:
		return l, false, nil // it goes back to its pool once the earlier pod is collected
	case l.Host == t.Host && sameRequester(l.Holder, t.holder) && t.olderThan(l):
		// The lease is the pod's own by an older UID, that of a cache which was behind: no earlier pod asks later than
		// this, unless the clock of the replica that served it was ahead and this container has the address since.
		if _, err := a.unchanged(ctx, l); err != nil {
			return l, false, err
		}
		return l, false, superseded(t.Request, l)
	}
	left, there, err := a.stillThere(ctx, t, l)
	switch {
	case err != nil:
		return l, false, err
	case there != nil:
		next, err = a.secondAttachment(ctx, t, left, there)
		return next, err == nil, err
	}
	h := t.holder
	h.SetSize, h.Slot = t.setSize(l), l.Slot
	h.Given = a.giveAgain(t, lease.Lease{Addr: l.Addr, Params: params})
	if next, ok = lease.TakeOver(l, params, h, t.constraints.Retention, a.leases.Now()); !ok {
		return l, false, ipam.Refuse(ipam.ReasonAddressInUse,
			"the object of address %s, which is kept for %s, is being deleted", l.Addr, t.who()).
			WithHint("ask again in a moment")
	}
	return next, true, nil
}

// setSize returns how many addresses the request takes together with one of an earlier pod: as many as that had, or as
// its own families say.
func (t *attempt) setSize(l lease.Lease) int {
	switch {
	case len(t.constraints.Sets) > 0:
		return l.SetSize
	case t.families.Single():
		return 0
	case t.families.Required():
		return 2 // one of each family
	}
	return l.SetSize
}

// inherits returns on which values of its pool an address of the earlier pod of the request's place goes to the
// request, if that pod is gone; ok is false where it does not.
func inherits(
	x *index.Index, w ipam.PickRequest, h lease.Holder, l lease.Lease,
) (p lease.Params, ok bool, refusal *ipam.Refusal) {
	if l.State != lease.Active || l.IfName != h.IfName || l.SameAttachment(h) ||
		l.Other != nil && l.Other.SameAttachment(h) {
		return p, false, nil
	}
	return x.TakeOverParams(w, l)
}

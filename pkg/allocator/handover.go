package allocator

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// handover gives the request an address that another pod of its claim leaves. With a primary key, that is the address
// of the key's earlier pod, which is gone. Without one, it is that of a pod which is terminating: the request waits for
// it.
func (a *Adder) handover(ctx context.Context, t *attempt) (err error) {
	if !complete(t.held) && t.constraints.PodPrimaryKey != "" {
		if err := a.takeOver(ctx, t); err != nil {
			return err
		}
	}
	if !complete(t.held) && len(t.prefer) == 0 {
		t.kept, err = a.departures.wait(ctx, t, t.want(t.held))
	}
	return err
}

// takeOver gives the request's pod the addresses of the earlier pod of its place, beside those that it holds: of the
// pod that had the same claim and key, and is gone. While that pod is there the request is refused, unless the virtual
// machine in it migrates to the request's pod: then both have the address.
func (a *Adder) takeOver(ctx context.Context, t *attempt) error {
	type passing struct{ from, to lease.Lease }
	want, all := t.want(t.held), []passing{}
	for _, l := range a.engine.index.Leases.ByKey(t.constraints.Claim, t.constraints.PodPrimaryKey) {
		if slices.ContainsFunc(t.held, func(o lease.Lease) bool { return sameSlot(o, l) }) {
			continue
		}
		if t.families.Single() && len(all) > 0 && all[0].from.Addr.Is4() != l.Addr.Is4() {
			continue // the earlier pod had both
		}
		next, ok, err := a.succession.successor(ctx, t, l)
		switch {
		case err != nil:
			return err
		case ok:
			all = append(all, passing{l, next})
		}
	}
	if len(all) == 0 {
		return nil
	}
	if refusal := a.engine.index.Moving(t.who()); refusal != nil {
		return refusal
	}
	// None of them where the host may not have so many.
	assumed := map[netip.Addr]bool{}
	defer func() {
		for addr := range assumed {
			a.engine.index.ForgetKey(addr, want.Key)
		}
	}()
	for _, p := range all {
		ours, refusal := a.engine.index.AssumeTakeOver(want, p.from, a.engine.leases.Now())
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
		stored, err := a.engine.leases.Swap(ctx, l, p.to)
		if errors.Is(err, store.ErrUnknown) {
			delete(assumed, l.Addr) // it stays
			a.writer.markUnknown(t.key(), l)
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
		a.engine.log.Info(message, "address", l.Addr.String(), "key",
			t.constraints.PodPrimaryKey, "earlier_pod", l.PodUID, "pod", t.holder.PodUID)
		t.held = append(t.held, stored)
	}
	return nil
}

package allocator

import (
	"context"
	"errors"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// lookup finds what the attachment of a request holds, and makes sure that it is still the request's.
func (a *Allocator) lookup(ctx context.Context, t *attempt) error {
	t.progress = progress{}
	held, err := a.held(ctx, t.holder)
	if err != nil {
		return err
	}
	if refusal := holdsOther(t.Request, held, a.index); refusal != nil {
		return refusal
	}
	if l, missing := a.index.Leases.MissingOf(t.holder); missing {
		return ipam.Refuse(ipam.ReasonUnavailable,
			"the object of address %s, which %s holds, was deleted and is being restored", l.Addr, t.who()).
			WithHint("ask again in a moment")
	}
	if t.refused != nil && !complete(held) {
		return t.refused
	}
	for i, l := range held {
		if held[i], err = a.verifyHeld(ctx, t, l, len(held)); err != nil {
			return err
		}
	}
	t.held = held
	return nil
}

// holdsOther refuses a request for something else than what is held.
func holdsOther(r Request, held []lease.Lease, x *index.Index) *ipam.Refusal {
	if lacks, ok := lackingFamily(r.Families, held); ok {
		return ipam.Refuse(ipam.ReasonContainerHoldsOther, "%s holds address %s alone, the request is for %s (%s)",
			r.who(), held[0].Addr, lacks, r.Families).
			WithHint("release %s first, or ask for what it holds", held[0].Addr)
	}
	for _, l := range held {
		for _, want := range r.Addrs {
			missing := !slices.ContainsFunc(held, func(o lease.Lease) bool { return o.Addr == want })
			if missing && (complete(held) || want.Is4() == l.Addr.Is4()) {
				return ipam.Refuse(ipam.ReasonContainerHoldsOther, "%s holds address %s, the request is for %s",
					r.who(), l.Addr, want).
					WithHint("release %s first, or ask without an address; %s", l.Addr, explain.NameInterface)
			}
		}
		if r.Pool != "" && !x.Pools.OfPool(l, r.Pool) {
			return ipam.Refuse(ipam.ReasonContainerHoldsOther,
				"%s holds address %s of pool %s, the request is for pool %s",
				r.who(), l.Addr, l.Pool, r.Pool).WithHint("release %s first, or ask in another name", l.Addr)
		}
		if p, ok := x.Pools.Get(l.Pool); ok && r.Network != "" && p.Network != r.Network {
			return ipam.Refuse(ipam.ReasonContainerHoldsOther,
				"%s holds address %s of pool %s, the request is for network %s",
				r.who(), l.Addr, l.Pool, r.Network).WithHint("release %s first, or use another ifName", l.Addr)
		}
	}
	return nil
}

// lackingFamily returns a family that a request has to have and that what it holds, where that is whole, is not of.
func lackingFamily(f ipam.Families, held []lease.Lease) (lacks ipaddr.Family, ok bool) {
	if !complete(held) {
		return lacks, false
	}
	for _, family := range ipaddr.Families() {
		of := func(l lease.Lease) bool { return ipaddr.FamilyOf(l.Addr) == family }
		wanted := f.Required() || f.Single() && len(f.Order) > 0 && f.Wants(family)
		if wanted && !slices.ContainsFunc(held, of) {
			return family, true
		}
	}
	return lacks, false
}

// verifyHeld makes sure by one read that a lease is still the request's. A newer container of the same pod takes the
// lease over by one write; together is how many it takes over.
func (a *Allocator) verifyHeld(ctx context.Context, t *attempt, l lease.Lease, together int) (lease.Lease, error) {
	h := &t.holder
	mine := l.ContainerID == t.ContainerID || t.ContainerID == "" // an owner need not name its container
	if !mine && t.olderThan(l) {
		if slices.Contains(l.Superseded, t.ContainerID) {
			return l, superseded(t.Request, l) // for good
		}
		// The request's container may have the address since then, and be older only by the clock of the replica that
		// served the one before.
		if _, err := a.unchanged(ctx, l); err != nil {
			return l, err
		}
		return l, superseded(t.Request, l)
	}
	if t.Owner == "" && !failpoint.Broken("uid") && (mine && l.PodUID != h.PodUID || !mine && t.PodUID == "") {
		// Either one of two UIDs is out of date, or the address is about to move to another container on
		// the word of the cache, whose pod may have been replaced by another of its name.
		pod, err := a.pods.FindLive(ctx, t.Namespace, t.PodName, t.PodUID)
		if err := unfit(t.Request, pod, err); err != nil {
			return l, err
		}
		if h.PodUID, h.Termination = pod.UID, pod.LongTermination(); !mine && l.PodUID != h.PodUID {
			return l, errStale // the lease of another pod
		}
	}
	if mine && l.PodUID == h.PodUID {
		return a.unchanged(ctx, l)
	}
	bound := *h
	bound.AddressNamed, bound.Given = l.AddressNamed || t.asksFor(l.Addr), a.giveAgain(t, l)
	if bound.SetSize, bound.Slot = l.SetSize, l.Slot; together > 1 {
		bound.SetSize = max(l.SetSize, together)
	}
	kept := t.constraints.RetentionFor(a.index, l)
	if t.refused != nil {
		kept = l.Retention
	}
	next, ok := lease.Bind(l, l.Params, bound, kept, a.leases.Now())
	if !ok {
		return l, ipam.Refuse(ipam.ReasonAddressInUse, "the object of address %s, which %s holds, is being deleted",
			l.Addr, t.who()).
			WithHint("ask again in a moment")
	}
	if err := ctx.Err(); err != nil {
		return l, unavailable(err)
	}
	stored, err := a.leases.Swap(ctx, l, next)
	if errors.Is(err, store.ErrUnknown) {
		a.markUnknown(t.key(), l)
	}
	if err != nil {
		return l, swapFailed(l.Addr, err)
	}
	return stored, nil
}

// olderThan reports whether a lease is for a newer container of the request's pod than the request's.
func (r Request) olderThan(l lease.Lease) bool {
	return !failpoint.Broken("supersession") &&
		(slices.Contains(l.Superseded, r.ContainerID) || l.StartedAt.After(r.StartedAt))
}

func superseded(r Request, l lease.Lease) *ipam.Refusal {
	refusal := ipam.Refuse(ipam.ReasonContainerSuperseded,
		"container %s holds address %s of %s in place of container %s",
		l.ContainerID, l.Addr, r.who(), r.ContainerID)
	if slices.Contains(l.Superseded, r.ContainerID) {
		return refusal
	}
	return refusal.WithHint("if container %s is the newer one, the clock of host %s was set back: "+
		"ask again until it has caught up, five minutes at most", r.ContainerID, r.Host)
}

// unchanged reads a lease that the index shows as the request's, and returns errStale if it is not.
func (a *Allocator) unchanged(ctx context.Context, l lease.Lease) (lease.Lease, error) {
	live, err := a.leases.Get(ctx, l.Addr)
	switch {
	case errors.Is(err, store.ErrNotFound):
		a.index.Feed.WroteDelete(l.Addr, l.Version, l.Epoch)
		return l, errStale
	case err != nil:
		return l, readFailed(err)
	}
	if from, held := live.From(func(now lease.Lease) bool {
		return now.State == lease.Active && now.ContainerID == l.ContainerID && now.IfName == l.IfName &&
			now.SameAttachment(l.Holder)
	}); held {
		return from, nil
	}
	a.index.Feed.Wrote(live)
	return l, errStale
}

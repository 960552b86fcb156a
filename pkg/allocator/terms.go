package allocator

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Terms hold what the claim and the annotations of a pod say about its addresses. The zero Terms are those of a
// pod that says nothing.
type Terms struct {
	// Sticky is what the addresses carry. With a claim that does not exist yet they carry its name all the same:
	// the controller makes it from them.
	ipam.Retention
	// Room is how many addresses of a family the claim may have in all; 0 for no bound, negative for none at all.
	Room int
	// Pool that addresses come from; empty for any.
	Pool string
	// Sets restrict the addresses, one of each; none for any.
	Sets []*netipx.IPSet
	// Gateway in place of the pool's; invalid for that.
	Gateway netip.Addr
}

// For are the terms on which somebody who has an address has it from now on. One that the claim may not have does not become
// the claim's: it would count as one of those that it may.
func (t Terms) For(l ipam.Lease) ipam.Retention {
	if t.Claim != l.Claim && (t.Pool != "" && t.Pool != l.Pool || len(t.Sets) > 0 && !slices.ContainsFunc(t.Sets, func(s *netipx.IPSet) bool { return s.Contains(l.Addr) })) {
		return ipam.Retention{}
	}
	return t.Retention
}

// TermsFinder finds the terms of pods; claim.Terms is one. Its errors are *ipam.Refusal where the pod's claim or
// annotations are wrong.
type TermsFinder interface {
	Of(ctx context.Context, pod workload.Pod) (Terms, error)
}

// agree refuses a request for something else than its pod's terms allow.
func (r Request) agree() *ipam.Refusal {
	t := r.terms
	if r.Pool != "" && t.Pool != "" && r.Pool != t.Pool {
		return ipam.Refuse(ipam.ReasonClaimConflict, "the request is for pool %s, the terms of %s are for pool %s", r.Pool, r.who(), t.Pool).
			WithHint("ask without a pool; see: bcsnetctl explain %s/%s", r.Namespace, r.PodName)
	}
	for _, a := range r.Addrs {
		if len(t.Sets) > 0 && !slices.ContainsFunc(t.Sets, func(s *netipx.IPSet) bool { return s.Contains(a) }) {
			return ipam.Refuse(ipam.ReasonClaimConflict, "the request is for address %s, the terms of %s are for %s", a, r.who(), ipam.FormatSet(t.Sets[0])).
				WithHint("ask without an address; see: bcsnetctl explain %s/%s", r.Namespace, r.PodName)
		}
	}
	return nil
}

// succeed gives the request's pod the addresses of the earlier pod of its place: of the same claim and key, that
// is no more, beside those that it holds. While the earlier one is there it says so. again says that the picture was
// wrong and has been mended.
func (a *Allocator) succeed(ctx context.Context, r Request, h ipam.Holder, held []ipam.Lease) (_ []ipam.Lease, again bool, err error) {
	type passing struct{ from, to ipam.Lease }
	want, all := r.want(h, held), []passing{}
	for _, l := range a.index.ByKey(r.terms.Claim, r.terms.PodPrimaryKey) {
		if slices.ContainsFunc(held, func(o ipam.Lease) bool { return o.Addr.Is4() == l.Addr.Is4() && o.Slot == l.Slot }) {
			continue
		}
		next, ok, err := a.successor(ctx, r, h, l)
		switch {
		case errors.Is(err, errStale):
			return nil, true, nil
		case err != nil:
			return nil, false, err
		case ok:
			all = append(all, passing{l, next})
		}
	}
	// None of them where the host may not have so many.
	holds := map[netip.Addr]bool{}
	defer func() {
		for addr := range holds {
			a.index.ForgetKey(addr, want.Key)
		}
	}()
	for _, p := range all {
		ours, refusal := a.index.AssumeTakeOver(want, p.from, a.leases.Now())
		if refusal != nil {
			return nil, false, refusal
		}
		if ours {
			holds[p.from.Addr] = true
		}
	}
	for _, p := range all {
		l := p.from
		if err := ctx.Err(); err != nil {
			return nil, false, unavailable(err)
		}
		stored, err := a.leases.Write(ctx, p.to)
		switch {
		case errors.Is(err, store.ErrConflict):
			if err = a.leases.Refetch(ctx, l); errors.Is(err, store.ErrConflict) {
				return nil, true, nil
			}
			return nil, false, readFailed(err)
		case errors.Is(err, store.ErrUnknown):
			delete(holds, l.Addr) // it stays
			a.doubt(r.key(), l)
			return nil, false, unknown(l.Addr, err)
		case err != nil:
			return nil, false, writeFailed(err)
		}
		a.log.Info("an address goes to the next pod of its key", "address", l.Addr.String(), "key", r.terms.PodPrimaryKey, "earlier_pod", l.PodUID, "pod", h.PodUID)
		held = append(held, stored)
	}
	return held, false, nil
}

// errStale reports that the index showed something else than the API server has. The index has been mended: another
// attempt decides anew.
var errStale = errors.New("the index was behind")

// successor returns an address of the earlier pod of the request's place as its next pod has it; ok is false where it is
// none. An error says that the earlier pod is there, or is errStale.
func (a *Allocator) successor(ctx context.Context, r Request, h ipam.Holder, l ipam.Lease) (next ipam.Lease, ok bool, err error) {
	params, ok, refusal := inherits(a.index, r.want(h, nil), h, l)
	switch {
	case refusal != nil:
		return l, false, refusal
	case !ok:
		return l, false, nil // it goes back to its pool once the earlier pod is collected
	case l.Host == r.Host && sameRequester(l.Holder, h) && r.olderThan(l):
		// The lease is the pod's own by an older UID, that of a cache which was behind: no earlier pod asks later than this,
		// unless the clock of the replica that served it was ahead and this container has the address since.
		switch _, stale, err := a.unchanged(ctx, l); {
		case err != nil:
			return l, false, err
		case stale:
			return l, false, errStale
		}
		return l, false, superseded(r, l)
	}
	if err := a.noMore(ctx, r, h, l); err != nil {
		return l, false, err
	}
	h.SetSize, h.Slot = l.SetSize, l.Slot
	if next, ok = ipam.TakeOver(l, params, h, r.terms.Retention, a.leases.Now()); !ok {
		return l, false, ipam.Refuse(ipam.ReasonAddressInUse, "the object of address %s, which is kept for %s, is being deleted", l.Addr, r.who()).
			WithHint("ask again in a moment")
	}
	return next, true, nil
}

// inherits says on which values of its pool an address of the earlier pod of the request's place goes to the request,
// if that pod is no more; ok is false where it does not.
func inherits(x *ipam.Index, w ipam.PickRequest, h ipam.Holder, l ipam.Lease) (p ipam.Params, ok bool, refusal *ipam.Refusal) {
	if l.State != ipam.Active || l.IfName != h.IfName || l.SameAttachment(h) {
		return p, false, nil
	}
	return x.TakeOverParams(w, l)
}

// better says whether an address that was just taken as a new one has to be given back: by now the watch shows
// one that is kept for the pod. The one that was taken is free again then.
func (a *Allocator) better(ctx context.Context, r Request, h ipam.Holder, fresh []ipam.Lease) (again bool, err error) {
	for _, l := range fresh {
		if !a.index.RetainsOwn(r.want(h, nil), l) {
			continue
		}
		_, err := FreeLease(ctx, a.leases, l, ipam.Change{}, l.SameHolding)
		return err == nil, err
	}
	return false, nil
}

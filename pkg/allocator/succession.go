package allocator

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// succession decides whether an address of a key passes from its earlier pod to the next one.
type succession struct {
	engine  *engine
	answers *answers
	// rule bounds how long the containers of a pod may run after the pod is gone. vanished has the earlier pods of
	// primary keys, if these pods are gone.
	rule     gone.Rule
	vanished *vanished
	// migrations knows which virtual machines migrate; nil where none gets a second attachment.
	migrations Migrations
}

// successor returns an address of the earlier pod of the request's place as its next pod has it; ok is false where the
// lease is not such an address. An error refuses because the earlier pod is there, or is errStale.
func (s *succession) successor(ctx context.Context, t *attempt, l lease.Lease) (next lease.Lease, ok bool, err error) {
	params, ok, refusal := inherits(s.engine.index, t.want(nil), t.holder, l)
	switch {
	case refusal != nil:
		return l, false, refusal
	case !ok:
		return l, false, nil // it goes back to its pool once the earlier pod is collected
	case l.Host == t.Host && sameRequester(l.Holder, t.holder) && t.olderThan(l):
		// The lease is the pod's own by an older UID, that of a cache which was behind: no earlier pod asks later than
		// this, unless the clock of the replica that served it was ahead and this container has the address since.
		if _, err := s.engine.unchanged(ctx, l); err != nil {
			return l, false, err
		}
		return l, false, superseded(t.Request, l)
	}
	left, there, err := s.stillThere(ctx, t, l)
	switch {
	case err != nil:
		return l, false, err
	case there != nil:
		next, err = s.secondAttachment(ctx, t, left, there)
		return next, err == nil, err
	}
	h := t.holder
	h.SetSize, h.Slot = t.setSize(l), l.Slot
	h.Given = s.answers.giveAgain(t, lease.Lease{Addr: l.Addr, Params: params})
	if next, ok = lease.TakeOver(l, params, h, t.constraints.Retention, s.engine.leases.Now()); !ok {
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
	if !ofAnotherPod(h, l) {
		return p, false, nil
	}
	return x.TakeOverParams(w, l)
}

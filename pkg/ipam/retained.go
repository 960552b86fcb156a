package ipam

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// pickRetained chooses of the addresses that are kept for the request's claim one of each family that it lacks: the one
// of its own pod, else the one most recently given up that is for no pod in particular. An address that is
// kept for its pod and cannot be had at present is not replaced by another.
func (x *Picker) pickRetained(w PickRequest, choices []choice) ([]choice, *Refusal) {
	if w.Claim == "" {
		return choices, nil
	}
	for _, n := range w.needs() {
		if covers(w, n, choices) || w.Families.Single() && len(choices) > 0 &&
			ipaddr.FamilyOf(choices[0].addr) != n.family {
			continue
		}
		c, refusal := x.retainedOne(w, n, choices)
		switch {
		case refusal != nil:
			return nil, refusal
		case c.pool != nil:
			choices = append(choices, c)
		}
	}
	return choices, nil
}

func (x *Picker) retainedOne(w PickRequest, n need, chosen []choice) (choice, *Refusal) {
	c, refusal := x.retainedOwn(w, n)
	switch {
	case refusal != nil:
		return c, refusal
	case c.pool != nil:
		return c, x.bounds.bars(c.pool, w, c.addr, chosen)
	}
	return x.retainedForAny(w, n, chosen), nil
}

// retainedOwn returns the address that is kept for the request's own pod, if there is one that its pool has still.
func (x *Picker) retainedOwn(w PickRequest, n need) (own choice, refusal *Refusal) {
	if w.Claim == "" || w.PodPrimaryKey == "" {
		return own, nil
	}
	for r := range x.state.Leases.Keyed(w.Claim, w.PodPrimaryKey) {
		if !waits(r, w, n) {
			continue
		}
		p, refusal := x.retainingPool(w, r.Addr)
		switch {
		case refusal != nil:
			return own, refusal
		case p == nil:
			continue
		case x.state.busy(r):
			return own, RefuseFacts(ReasonAddressInUse, explain.Facts{
				Kind: explain.OwnAddressBeingGiven, Address: r.Addr, Who: w.Who,
			})
		}
		own = choice{p, r.Addr, n.slot}
	}
	return own, nil
}

// retainingPool returns the pool by which an address of the request's claim may go to the request: nil where no pool
// has the address any more, and a refusal where its pool does not serve the request.
func (x *Picker) retainingPool(w PickRequest, a netip.Addr) (*PoolState, *Refusal) {
	p, _, served := x.state.Pools.Serving(a)
	switch {
	case !served || p.Terminating:
		return nil, nil
	case !x.state.Pools.fits(p, w):
		return nil, x.retainedElsewhere(w, a, p)
	}
	return p, nil
}

// waits reports whether an address is reserved for a need of the request.
func waits(r *ledger.Record, w PickRequest, n need) bool {
	name := r.IfName()
	return r.State == lease.Reserved && ipaddr.FamilyOf(r.Addr) == n.family && !r.Has(ledger.FlagDeleting) &&
		(n.among == nil || n.among.Contains(r.Addr)) && (name == "" || name == w.IfName && int(r.Slot) == n.slot)
}

// busy reports whether an address that is reserved is on its way to somebody, missing, or a node's.
func (x *State) busy(r *ledger.Record) bool {
	_, held := x.Assumed.ByAddr[r.Addr]
	_, lost := x.Missing.Gone[r.Addr]
	_, node := x.Nodes.nodeIP[r.Addr]
	return held || lost || node
}

func (x *Picker) retainedElsewhere(w PickRequest, a netip.Addr, p *PoolState) *Refusal {
	why := x.unfit(w, a, p)
	return RefuseFacts(ReasonClaimConflict, explain.Facts{
		Kind: explain.OwnAddressElsewhere, Address: a, Who: w.Who, Claim: w.Claim, Pool: p.Name,
		Because: []string{why.Message},
	})
}

// retainedForAny returns the one of the addresses that are kept for whichever pod of the request's claim comes that was
// given up last and can be had; the choice has no pool where there is none.
func (x *Picker) retainedForAny(w PickRequest, n need, chosen []choice) (best choice) {
	c := x.state.Claims.ByClaim[w.Claim]
	if c == nil {
		return best
	}
	var first *ledger.Record
	for _, part := range c.Parts {
		if part.Of.Family != n.family || !x.mayServe(part, w, chosen) {
			continue
		}
		part.All.Ascend(func(r *ledger.Record) bool {
			if !r.ForAny() || first != nil && ledger.TakenFirst(first, r) {
				return false
			}
			if !waits(r, w, n) {
				return part.Of.IfName == "" || part.Of.IfName == w.IfName
			}
			p, _, served := x.state.Pools.Serving(r.Addr)
			if x.state.busy(r) || w.promised(r.Addr) || !served || p.Terminating || !x.state.Pools.fits(p, w) ||
				x.bounds.barred(p, w, r.Addr, chosen) {
				return true
			}
			first, best = r, choice{p, r.Addr, n.slot}
			return false
		})
	}
	return best
}

// retainedFor returns an address of a pool, as its object says, that is kept for whichever pod of the request's claim
// comes; invalid for none.
func (x *Picker) retainedFor(p *PoolState, w PickRequest, n need) (found netip.Addr) {
	c := x.state.Claims.ByClaim[w.Claim]
	if c == nil {
		return found
	}
	for _, part := range c.Parts {
		if part.Of.Pool == p.Name && part.Of.Family == n.family {
			part.All.Ascend(func(r *ledger.Record) bool {
				if r.ForAny() && waits(r, w, n) {
					found = r.Addr
				}
				return r.ForAny() && !found.IsValid()
			})
		}
		if found.IsValid() {
			break
		}
	}
	return found
}

// mayServe returns false where a request gets none of the addresses of a part: their pool serves them all itself, and
// not the request. For the namespaces that it counts for they are all like the first.
func (x *Picker) mayServe(part *ledger.ClaimPart, w PickRequest, chosen []choice) bool {
	p := x.state.Pools.ByName[part.Of.Pool]
	first, _ := part.All.Min()
	return !x.state.ServesItsOwn(part.Of.Pool) || !p.Terminating && x.state.Pools.fits(p, w) &&
		!x.bounds.barred(p, w, first.Addr, chosen)
}

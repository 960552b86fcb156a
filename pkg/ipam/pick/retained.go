package pick

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// pickRetained chooses of the addresses that are kept for the request's claim one of each family that it lacks: the one
// of its own pod, else the one most recently given up that is for no pod in particular. An address that is
// kept for its pod and cannot be had at present is not replaced by another.
func (x *Picker) pickRetained(w ipam.PickRequest, choices []memory.Choice) ([]memory.Choice, *ipam.Refusal) {
	if w.Claim == "" {
		return choices, nil
	}
	for _, n := range w.Needs() {
		if covers(w, n, choices) || w.Families.Single() && len(choices) > 0 &&
			ipaddr.FamilyOf(choices[0].Addr) != n.Family {
			continue
		}
		c, refusal := x.retainedOne(w, n, choices)
		switch {
		case refusal != nil:
			return nil, refusal
		case c.Pool != nil:
			choices = append(choices, c)
		}
	}
	return choices, nil
}

func (x *Picker) retainedOne(w ipam.PickRequest, n ipam.Need, chosen []memory.Choice) (memory.Choice, *ipam.Refusal) {
	c, refusal := x.retainedOwn(w, n)
	switch {
	case refusal != nil:
		return c, refusal
	case c.Pool != nil:
		return c, x.bounds.bars(c.Pool, w, c.Addr, chosen)
	}
	return x.retainedForAny(w, n, chosen), nil
}

// retainedOwn returns the address that is kept for the request's own pod, if there is one that its pool has still.
func (x *Picker) retainedOwn(w ipam.PickRequest, n ipam.Need) (own memory.Choice, refusal *ipam.Refusal) {
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
		case x.state.Busy(r):
			return own, ipam.RefuseFacts(ipam.ReasonAddressInUse, explain.Facts{
				Kind: explain.OwnAddressBeingGiven, Address: r.Addr, Who: w.Who,
			})
		}
		own = memory.Choice{Pool: p, Addr: r.Addr, Slot: n.Slot}
	}
	return own, nil
}

// retainingPool returns the pool by which an address of the request's claim may go to the request: nil if no pool
// has the address any more, and a refusal where its pool does not serve the request.
func (x *Picker) retainingPool(w ipam.PickRequest, a netip.Addr) (*memory.PoolState, *ipam.Refusal) {
	p, _, served := x.state.Pools.Serving(a)
	switch {
	case !served || p.Terminating:
		return nil, nil
	case !x.state.Pools.Fits(p, w):
		return nil, x.retainedElsewhere(w, a, p)
	}
	return p, nil
}

// waits reports whether an address is reserved for a need of the request.
func waits(r *ledger.Record, w ipam.PickRequest, n ipam.Need) bool {
	name := r.IfName()
	return r.State == lease.Reserved && ipaddr.FamilyOf(r.Addr) == n.Family && !r.Has(ledger.FlagDeleting) &&
		(n.Among == nil || n.Among.Contains(r.Addr)) && (name == "" || name == w.IfName && int(r.Slot) == n.Slot)
}

func (x *Picker) retainedElsewhere(w ipam.PickRequest, a netip.Addr, p *memory.PoolState) *ipam.Refusal {
	why := x.unfit(w, a, p)
	return ipam.RefuseFacts(ipam.ReasonClaimConflict, explain.Facts{
		Kind: explain.OwnAddressElsewhere, Address: a, Who: w.Who, Claim: w.Claim, Pool: p.Name,
		Because: []string{why.Message},
	})
}

// retainedForAny returns the one of the addresses that are kept for whichever pod of the request's claim comes that was
// given up last and can be had; the choice has no pool where there is none.
func (x *Picker) retainedForAny(w ipam.PickRequest, n ipam.Need, chosen []memory.Choice) (best memory.Choice) {
	c := x.state.Claims.ByClaim[w.Claim]
	if c == nil {
		return best
	}
	var first *ledger.Record
	for _, part := range c.Parts {
		if part.Of.Family != n.Family || !x.mayServe(part, w, chosen) {
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
			if x.state.Busy(r) || w.IsPromised(r.Addr) || !served || p.Terminating || !x.state.Pools.Fits(p, w) ||
				x.bounds.barred(p, w, r.Addr, chosen) {
				return true
			}
			first, best = r, memory.Choice{Pool: p, Addr: r.Addr, Slot: n.Slot}
			return false
		})
	}
	return best
}

// retainedFor returns an address of a pool, as its object says, that is kept for whichever pod of the request's claim
// comes; invalid for none.
func (x *Picker) retainedFor(p *memory.PoolState, w ipam.PickRequest, n ipam.Need) (found netip.Addr) {
	c := x.state.Claims.ByClaim[w.Claim]
	if c == nil {
		return found
	}
	for _, part := range c.Parts {
		if part.Of.Pool == p.Name && part.Of.Family == n.Family {
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

// mayServe returns false if a request gets none of the addresses of a part: their pool serves them all itself, and
// not the request. For the namespaces that it counts for they are all like the first.
func (x *Picker) mayServe(part *ledger.ClaimPart, w ipam.PickRequest, chosen []memory.Choice) bool {
	p := x.state.Pools.ByName[part.Of.Pool]
	first, _ := part.All.Min()
	return !x.state.ServesItsOwn(part.Of.Pool) || !p.Terminating && x.state.Pools.Fits(p, w) &&
		!x.bounds.barred(p, w, first.Addr, chosen)
}

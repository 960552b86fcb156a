package ipam

import (
	"net/netip"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// picker chooses addresses for a request, or refuses. It changes nothing but what has expired. Choosing reserves
// nothing: the next request may be given the same address, unless the index assumes it (Index.Pick).
type picker struct {
	state  *state
	bounds bounds
}

// Pick is an address chosen for a request. It is assumed for the request until Forget.
type Pick struct {
	Pool Pool
	// Current is the address as it is now; version 0 when it has no object.
	Current lease.Lease
	// Slot is which of the request's sets the address is from.
	Slot int
	// NewBlock: the pool is a block that does not exist yet. It has to be made before the address is given.
	NewBlock bool
}

// Pick chooses the addresses that a request lacks: one of each family that the pools of one network
// offer, or as its families say; when some are held already, those that are missing from the same network. Every
// address it returns is assumed. It returns none and no refusal in two cases: nothing is missing, or the pools of what
// is held serve the request no more.
func (x *Index) Pick(w PickRequest, now time.Time) ([]Pick, *Refusal) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if refusal := x.core.picker.compares(w); refusal != nil {
		return nil, refusal
	}
	picks, refusal := x.core.picker.pick(w, now)
	for _, p := range picks {
		x.core.state.assume(p.Current.Addr, Assumed{
			Key: w.Key, Host: w.Host, Pool: p.Pool.CountedAs(), Charged: w.chargedTo(), Since: now,
		})
	}
	return picks, refusal
}

// Propose returns what Pick would choose. It assumes nothing.
func (x *Index) Propose(w PickRequest, now time.Time) ([]Pick, *Refusal) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	return x.core.picker.pick(w, now)
}

func (x *picker) pick(w PickRequest, now time.Time) ([]Pick, *Refusal) {
	x.state.now = now.UnixNano()
	if refusal := x.returns(w); refusal != nil {
		return nil, refusal
	}
	if x.state.pools.undetermined(w) {
		return nil, RefuseFacts(ReasonUnavailable, explain.Facts{
			Kind: explain.NamespaceUnknown, Who: w.Who, Namespace: w.Namespace,
		})
	}
	asked, refusal := x.asked(w)
	if refusal != nil {
		return nil, refusal
	}
	if !w.Ahead {
		if asked, refusal = x.pickRetained(w, asked); refusal != nil {
			return nil, refusal
		}
		asked = x.pickOwnCooling(w, asked)
	}
	choices, refusal := x.completeAny(w, asked)
	if refusal != nil {
		return nil, refusal
	}
	var picks []Pick
	for _, c := range choices {
		current := lease.Lease{Addr: c.addr, Epoch: x.state.progress.epoch}
		if r := x.state.leases.record(c.addr); r != nil {
			current = r.lease()
		}
		picks = append(picks, Pick{Pool: c.pool.Pool, Current: current, Slot: c.slot, NewBlock: c.pool.proposed})
	}
	return picks, nil
}

// completeAny completes a request in the first way of its families in which that is possible. The refusal is about the
// least that the request would take.
func (x *picker) completeAny(w PickRequest, asked []choice) (choices []choice, refusal *Refusal) {
	tries := w.tries()
	for i := range tries {
		var why *Refusal
		w.try = tries[i]
		if choices, why = x.complete(w, asked); why == nil {
			return choices, nil
		}
		if i < 2 {
			refusal = why
		}
	}
	return nil, refusal
}

// complete adds to the addresses asked for what the request lacks beside them: from the network of
// what it holds, else from that of what it asked for, else from the first one that has it all.
func (x *picker) complete(w PickRequest, asked []choice) ([]choice, *Refusal) {
	var together []*poolState
	switch {
	case w.try.first && len(asked) > 0:
		w.try = try{families: []ipaddr.Family{ipaddr.FamilyOf(asked[0].addr)}}
	case w.try.first && len(w.Sets) > 0:
		w.try = try{families: []ipaddr.Family{ipaddr.FamilyOf(w.Sets[0].Ranges()[0].From())}}
	}
	if refusal := w.unnamedFamily(); refusal != nil {
		return nil, refusal
	}
	switch {
	case len(w.Sets) > 0: // they say themselves what belongs together
		if together = slices.Collect(x.state.pools.fitting(w)); len(together) == 0 {
			return nil, x.unservedAmong(w)
		}
	case len(w.Have) > 0:
		together = x.state.pools.heldTogether(w)
	case len(asked) > 0:
		together = x.state.pools.together(asked[0].pool, w)
	default:
		return x.firstComplete(w)
	}
	choices, ok, refusal := x.pickFrom(together, w, asked)
	if !ok {
		if refusal == nil {
			refusal = x.nothingLeft(w, together)
		}
		return nil, refusal
	}
	return choices, nil
}

func (x *picker) firstComplete(w PickRequest) ([]choice, *Refusal) {
	for p := range x.state.pools.fitting(w) {
		together := x.state.pools.together(p, w)
		if w.try.first {
			w.try.families = []ipaddr.Family{p.Family()}
			together = slices.DeleteFunc(together, func(o *poolState) bool { return o.Family() != p.Family() })
		}
		if together[0] != p {
			continue // tried before
		}
		choices, ok, refusal := x.pickFrom(together, w, nil)
		switch {
		case refusal != nil:
			return nil, refusal
		case ok && len(choices) > 0:
			return choices, nil
		}
	}
	fit := slices.Collect(x.state.pools.fitting(w))
	switch {
	case len(fit) == 0:
		return nil, x.unserved(w)
	case w.try.first:
		return nil, x.exhausted(w, fit)
	}
	return nil, x.nothingLeft(w, fit)
}

// pickFrom chooses from the pools of one network what the request lacks. ok is false where something is missing: then
// refusal has the reason, or is nil if the caller is to find it (exhausted).
func (x *picker) pickFrom(pools []*poolState, w PickRequest, asked []choice) (
	choices []choice, ok bool, refusal *Refusal,
) {
	choices = asked
	for _, n := range w.needs() {
		offered := n.among != nil || offers(pools, n.family)
		switch {
		case w.covers(n, choices), !offered && w.try.families == nil:
			continue
		case !offered:
			return nil, false, nil
		}
		if refusal := x.bounds.full(w, n.family); refusal != nil {
			return nil, false, refusal
		}
		c, ok := x.firstFree(pools, n, w, choices)
		switch {
		case !ok && n.among != nil:
			return nil, false, x.noneAmong(w, n, pools, choices)
		case !ok:
			return nil, false, nil
		}
		choices = append(choices, c)
	}
	return choices, true, nil
}

func (x *picker) firstFree(pools []*poolState, n need, w PickRequest, chosen []choice) (choice, bool) {
	start := xxhash.Sum64String(w.Key)
	for _, p := range pools {
		if p.Family() != n.family || !p.Serves() || p.n == 0 {
			continue
		}
		if p.split != nil {
			if c, ok := x.fromNewBlock(p, n, w, chosen, start); ok {
				return c, true
			}
			continue
		}
		if x.state.expireCooldowns(p); !p.hasFree() || x.bounds.barred(p, w, netip.Addr{}, chosen) {
			continue
		}
		if n.among != nil {
			if a, ok := p.firstAmong(n.among, w, chosen); ok {
				return choice{p, a, n.slot}, true
			}
			continue
		}
		if a, ok := p.firstAfter(p.start(start), w); ok {
			return choice{p, a, n.slot}, true
		}
	}
	return choice{}, false
}

// Moving refuses that a lease moves to another container of its pod for as long as nothing new is given. The copy to
// which the store was put back may name a container that has released the address since, and somebody else may have it.
func (x *Index) Moving(who string) *Refusal {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	w := PickRequest{Who: who}
	if refusal := x.core.picker.compares(w); refusal != nil {
		return refusal
	}
	return x.core.picker.returns(w)
}

// compares refuses new addresses while it is not known whether other replicas have seen more of the store.
func (x *picker) compares(w PickRequest) *Refusal {
	if !x.state.progress.comparing || failpoint.Broken("witness") {
		return nil
	}
	return RefuseFacts(ReasonUnavailable, explain.Facts{Kind: explain.StoreIsCompared, Who: w.Who})
}

// returns refuses new addresses while other replicas may not have written again what they know since the store was put
// back.
func (x *picker) returns(w PickRequest) *Refusal {
	if x.state.progress.returning == 0 || failpoint.Broken("returning") {
		return nil
	}
	return RefuseFacts(ReasonUnavailable, explain.Facts{Kind: explain.StoreWasReset, Who: w.Who, In: ReturnTime})
}

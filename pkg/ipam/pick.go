package ipam

import (
	"net/netip"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Picker chooses addresses for a request, or refuses. It changes nothing but what has expired. Choosing reserves
// nothing: the next request may be given the same address, unless the index assumes it (Index.Pick).
type Picker struct {
	state  *State
	bounds bounds
}

// NewPicker returns a picker of what is known.
func NewPicker(s *State) Picker { return Picker{state: s, bounds: bounds{s}} }

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

// Pick returns what Index.Propose does.
func (x *Picker) Pick(w PickRequest, now time.Time) ([]Pick, *Refusal) {
	x.state.Now = now.UnixNano()
	if refusal := x.returns(w); refusal != nil {
		return nil, refusal
	}
	if x.state.Pools.undetermined(w) {
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
		current := lease.Lease{Addr: c.addr, Epoch: x.state.Progress.Epoch}
		if r := x.state.Leases.Record(c.addr); r != nil {
			current = r.Lease()
		}
		picks = append(picks, Pick{Pool: c.pool.Pool, Current: current, Slot: c.slot, NewBlock: c.pool.proposed})
	}
	return picks, nil
}

// completeAny completes a request in the first way of its families in which that is possible. The refusal is about the
// least that the request would take.
func (x *Picker) completeAny(w PickRequest, asked []choice) (choices []choice, refusal *Refusal) {
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
func (x *Picker) complete(w PickRequest, asked []choice) ([]choice, *Refusal) {
	var together []*PoolState
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
		if together = slices.Collect(x.state.Pools.Fitting(w)); len(together) == 0 {
			return nil, x.unservedAmong(w)
		}
	case len(w.Have) > 0:
		together = x.state.Pools.heldTogether(w)
	case len(asked) > 0:
		together = x.state.Pools.together(asked[0].pool, w)
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

func (x *Picker) firstComplete(w PickRequest) ([]choice, *Refusal) {
	for p := range x.state.Pools.Fitting(w) {
		together := x.state.Pools.together(p, w)
		if w.try.first {
			w.try.families = []ipaddr.Family{p.Family()}
			together = slices.DeleteFunc(together, func(o *PoolState) bool { return o.Family() != p.Family() })
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
	fit := slices.Collect(x.state.Pools.Fitting(w))
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
func (x *Picker) pickFrom(pools []*PoolState, w PickRequest, asked []choice) (
	choices []choice, ok bool, refusal *Refusal,
) {
	choices = asked
	for _, n := range w.needs() {
		offered := n.among != nil || Offers(pools, n.family)
		switch {
		case covers(w, n, choices), !offered && w.try.families == nil:
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

// covers reports whether a request has an address of a need, or gets one of those chosen for it.
func covers(w PickRequest, n need, chosen []choice) bool {
	has := func(l lease.Lease) bool { return ipaddr.FamilyOf(l.Addr) == n.family && l.Slot == n.slot }
	gets := func(c choice) bool { return ipaddr.FamilyOf(c.addr) == n.family && c.slot == n.slot }
	return slices.ContainsFunc(w.Have, has) || slices.ContainsFunc(chosen, gets)
}

func (x *Picker) firstFree(pools []*PoolState, n need, w PickRequest, chosen []choice) (choice, bool) {
	start := xxhash.Sum64String(w.Key)
	for _, p := range pools {
		if p.Family() != n.family || !p.Serves() || p.N == 0 {
			continue
		}
		if p.Split != nil {
			if c, ok := x.fromNewBlock(p, n, w, chosen, start); ok {
				return c, true
			}
			continue
		}
		if x.state.ExpireCooldowns(p); !p.hasFree() || x.bounds.barred(p, w, netip.Addr{}, chosen) {
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

// Compares refuses new addresses while it is not known whether other replicas have seen more of the store.
func (x *Picker) Compares(w PickRequest) *Refusal {
	if !x.state.Progress.Comparing || failpoint.Broken("witness") {
		return nil
	}
	return RefuseFacts(ReasonUnavailable, explain.Facts{Kind: explain.StoreIsCompared, Who: w.Who})
}

// returns refuses new addresses while other replicas may not have written again what they know since the store was put
// back.
func (x *Picker) returns(w PickRequest) *Refusal {
	if x.state.Progress.Returning == 0 || failpoint.Broken("returning") {
		return nil
	}
	return RefuseFacts(ReasonUnavailable, explain.Facts{Kind: explain.StoreWasReset, Who: w.Who, In: ReturnTime})
}

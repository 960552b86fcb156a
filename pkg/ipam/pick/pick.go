package pick

import (
	"net/netip"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// Picker chooses addresses for a request, or refuses. It changes nothing but what has expired. Choosing reserves
// nothing: the next request may be given the same address, unless the index assumes it (Index.Pick).
type Picker struct {
	state  *memory.State
	bounds bounds
}

// New returns a picker of what is known.
func New(s *memory.State) Picker { return Picker{state: s, bounds: bounds{s}} }

// Pick returns what Index.Propose does.
func (x *Picker) Pick(w ipam.PickRequest, now time.Time) ([]ipam.Pick, *ipam.Refusal) {
	x.state.Now = now.UnixNano()
	if refusal := x.returns(w); refusal != nil {
		return nil, refusal
	}
	if x.state.Pools.Undetermined(w) {
		return nil, ipam.RefuseFacts(ipam.ReasonUnavailable, explain.Facts{
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
	var picks []ipam.Pick
	for _, c := range choices {
		current := lease.Lease{Addr: c.Addr, Epoch: x.state.Progress.Epoch}
		if r := x.state.Leases.Record(c.Addr); r != nil {
			current = r.Lease()
		}
		picks = append(picks, ipam.Pick{Pool: c.Pool.Pool, Current: current, Slot: c.Slot, NewBlock: c.Pool.Proposed})
	}
	return picks, nil
}

// completeAny completes a request in the first way of its families in which that is possible. The refusal is about the
// least that the request would take.
func (x *Picker) completeAny(w ipam.PickRequest, asked []memory.Choice) (
	choices []memory.Choice, refusal *ipam.Refusal,
) {
	tries := w.Tries()
	for i := range tries {
		var why *ipam.Refusal
		w.Try = tries[i]
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
func (x *Picker) complete(w ipam.PickRequest, asked []memory.Choice) ([]memory.Choice, *ipam.Refusal) {
	var together []*memory.PoolState
	switch {
	case w.Try.First && len(asked) > 0:
		w.Try = ipam.Try{Families: []ipaddr.Family{ipaddr.FamilyOf(asked[0].Addr)}}
	case w.Try.First && len(w.Sets) > 0:
		w.Try = ipam.Try{Families: []ipaddr.Family{ipaddr.FamilyOf(w.Sets[0].Ranges()[0].From())}}
	}
	if refusal := w.UnnamedFamily(); refusal != nil {
		return nil, refusal
	}
	switch {
	case len(w.Sets) > 0: // they say themselves what belongs together
		if together = slices.Collect(x.state.Pools.Fitting(w)); len(together) == 0 {
			return nil, x.unservedAmong(w)
		}
	case len(w.Have) > 0:
		together = x.state.Pools.HeldTogether(w)
	case len(asked) > 0:
		together = x.state.Pools.Together(asked[0].Pool, w)
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

func (x *Picker) firstComplete(w ipam.PickRequest) ([]memory.Choice, *ipam.Refusal) {
	for p := range x.state.Pools.Fitting(w) {
		together := x.state.Pools.Together(p, w)
		if w.Try.First {
			w.Try.Families = []ipaddr.Family{p.Family()}
			together = slices.DeleteFunc(together, func(o *memory.PoolState) bool { return o.Family() != p.Family() })
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
	case w.Try.First:
		return nil, x.exhausted(w, fit)
	}
	return nil, x.nothingLeft(w, fit)
}

// pickFrom chooses from the pools of one network what the request lacks. ok is false if something is missing: then
// refusal has the reason, or is nil if the caller is to find it (exhausted).
func (x *Picker) pickFrom(pools []*memory.PoolState, w ipam.PickRequest, asked []memory.Choice) (
	choices []memory.Choice, ok bool, refusal *ipam.Refusal,
) {
	choices = asked
	for _, n := range w.Needs() {
		offered := n.Among != nil || memory.Offers(pools, n.Family)
		switch {
		case covers(w, n, choices), !offered && w.Try.Families == nil:
			continue
		case !offered:
			return nil, false, nil
		}
		if refusal := x.bounds.full(w, n.Family); refusal != nil {
			return nil, false, refusal
		}
		c, ok := x.firstFree(pools, n, w, choices)
		switch {
		case !ok && n.Among != nil:
			return nil, false, x.noneAmong(w, n, pools, choices)
		case !ok:
			return nil, false, nil
		}
		choices = append(choices, c)
	}
	return choices, true, nil
}

// covers reports whether a request has an address of a need, or gets one of those chosen for it.
func covers(w ipam.PickRequest, n ipam.Need, chosen []memory.Choice) bool {
	has := func(l lease.Lease) bool { return ipaddr.FamilyOf(l.Addr) == n.Family && l.Slot == n.Slot }
	gets := func(c memory.Choice) bool { return ipaddr.FamilyOf(c.Addr) == n.Family && c.Slot == n.Slot }
	return slices.ContainsFunc(w.Have, has) || slices.ContainsFunc(chosen, gets)
}

func (x *Picker) firstFree(pools []*memory.PoolState, n ipam.Need, w ipam.PickRequest,
	chosen []memory.Choice) (memory.Choice, bool) {
	start := xxhash.Sum64String(w.Key)
	for _, p := range pools {
		if p.Family() != n.Family || !p.Serves() || p.N == 0 {
			continue
		}
		if p.Split != nil {
			if c, ok := x.fromNewBlock(p, n, w, chosen, start); ok {
				return c, true
			}
			continue
		}
		if x.state.ExpireCooldowns(p); !p.HasFree() || x.bounds.barred(p, w, netip.Addr{}, chosen) {
			continue
		}
		if n.Among != nil {
			if a, ok := p.FirstAmong(n.Among, w, chosen); ok {
				return memory.Choice{Pool: p, Addr: a, Slot: n.Slot}, true
			}
			continue
		}
		if a, ok := p.FirstAfter(p.Start(start), w); ok {
			return memory.Choice{Pool: p, Addr: a, Slot: n.Slot}, true
		}
	}
	return memory.Choice{}, false
}

// Moving refuses that a lease moves to another container of its pod while no new address is given. The copy to which
// the store was put back may name a container that has released the address since, and somebody else may have it.
func (x *Picker) Moving(who string) *ipam.Refusal {
	w := ipam.PickRequest{Who: who}
	if refusal := x.Compares(w); refusal != nil {
		return refusal
	}
	return x.returns(w)
}

// Compares refuses new addresses while it is not known whether other replicas have seen more of the store.
func (x *Picker) Compares(w ipam.PickRequest) *ipam.Refusal {
	if !x.state.Progress.Comparing || failpoint.Broken("witness") {
		return nil
	}
	return ipam.RefuseFacts(ipam.ReasonUnavailable, explain.Facts{Kind: explain.StoreIsCompared, Who: w.Who})
}

// returns refuses new addresses while other replicas may not have written again what they know since the store was put
// back.
func (x *Picker) returns(w ipam.PickRequest) *ipam.Refusal {
	if x.state.Progress.Returning == 0 || failpoint.Broken("returning") {
		return nil
	}
	return ipam.RefuseFacts(ipam.ReasonUnavailable, explain.Facts{Kind: explain.StoreWasReset, Who: w.Who,
		In: ipam.ReturnTime})
}

package pick

import (
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// exhausted returns why pools that fit gave no address, with their counts. The refusal is about the pool that is in the
// way, not one that has room.
func (x *Picker) exhausted(w ipam.PickRequest, fit []*memory.PoolState) *ipam.Refusal {
	for _, p := range fit {
		x.state.ExpireCooldowns(p)
	}
	slices.SortStableFunc(fit, func(a, b *memory.PoolState) int {
		return ipam.FalseFirst(b.Split != nil, a.Split != nil)
	})
	facts := explain.Facts{Who: w.Who, Namespace: w.Namespace, More: max(0, len(fit)-explain.MaxNamed)}
	if len(w.Pools) == 0 && w.Network == "" {
		facts.Own = x.state.Pools.OwnNames(w)
	}
	for _, p := range fit[:min(len(fit), explain.MaxNamed)] {
		facts.States = append(facts.States, x.stateOf(p, w))
	}
	is := func(kind explain.Kind, p *memory.PoolState, reason ipam.Reason) *ipam.Refusal {
		facts.Kind, facts.Pool, facts.Whole = kind, p.Name, p.CountedAs()
		return ipam.RefuseFacts(reason, facts)
	}
	overlapped := func(p *memory.PoolState) bool { return p.Serves() && p.N == 0 && p.LosesAddresses() }
	if none := slices.IndexFunc(fit, overlapped); none >= 0 {
		return is(explain.ExhaustedByOverlap, fit[none], ipam.ReasonPoolExhausted)
	}
	for _, p := range fit {
		if !p.Serves() {
			continue
		}
		byHost, namespace := x.barredBy(p, w)
		switch {
		case byHost:
			return is(explain.ExhaustedByHost, p, ipam.ReasonHostFull)
		case namespace != "":
			if facts.Namespace = namespace; namespace != w.Namespace { // it is that of the claim
				facts.Own = nil
			}
			return is(explain.ExhaustedByQuota, p, ipam.ReasonQuotaExceeded)
		case p.HasFree() && x.bounds.overKept(p, w, netip.Addr{}):
			return x.bounds.keepsTooMany(p, w)
		}
	}
	serves := func(p *memory.PoolState) bool { return p.Split != nil && p.Serves() }
	if split := slices.IndexFunc(fit, serves); split >= 0 {
		kind := explain.NoFreeBlock
		if !fit[split].AutoAssign {
			kind = explain.NoBlockByItself
		}
		return is(kind, fit[split], ipam.ReasonNoFreeBlock)
	}
	if full := slices.IndexFunc(fit, func(p *memory.PoolState) bool { return p.Serves() && !p.HasFree() }); full >= 0 {
		if next := x.state.NextCooled(fit[full]); !next.IsZero() {
			facts.In = x.state.Until(next)
			return is(explain.ExhaustedCooling, fit[full], ipam.ReasonPoolExhausted)
		}
		return is(explain.ExhaustedTaken, fit[full], ipam.ReasonPoolExhausted)
	}
	stopped := slices.IndexFunc(fit, func(p *memory.PoolState) bool { return !p.Serves() })
	if stopped < 0 {
		return is(explain.ExhaustedPromised, fit[0], ipam.ReasonPoolExhausted)
	}
	facts.Stop = fit[stopped].Stop()
	return is(explain.ExhaustedStopped, fit[stopped], fit[stopped].Stopped())
}

// barredBy finds the bound that keeps a request from a free address of a pool, or from one that is kept for its claim:
// that of its host, or that of a namespace.
func (x *Picker) barredBy(p *memory.PoolState, w ipam.PickRequest) (host bool, namespace string) {
	addrs := make([]netip.Addr, 0, 2)
	if p.HasFree() {
		addrs = append(addrs, netip.Addr{})
	}
	if a := x.retainedFor(p, w, ipam.Need{Family: p.Family()}); a.IsValid() {
		addrs = append(addrs, a)
	}
	for _, a := range addrs {
		if x.bounds.hostFull(p, w, nil) {
			return true, ""
		}
		if ns := x.bounds.overQuota(p, w, a, nil); ns != "" {
			return false, ns
		}
	}
	return false, ""
}

// stateOf returns the counts of a pool that gave a request no address.
func (x *Picker) stateOf(p *memory.PoolState, w ipam.PickRequest) explain.PoolState {
	if !p.Serves() {
		return explain.PoolState{Pool: p.Name, Stop: p.Stop()}
	}
	if p.Split != nil {
		return explain.PoolState{Pool: p.Name, Subnet: p.Plan.Subnet, Blocks: p.BlockState(w.Namespace)}
	}
	c := x.state.CountsOf(p.Name)
	state := explain.PoolState{
		Pool: p.Name, Subnet: p.Plan.Subnet, Free: c.Free, Capacity: c.Capacity, Active: c.Active, Reserved: c.Reserved,
		Gone: min(x.state.Gone[p.Name], c.Active), Cooling: c.Cooling, Elsewhere: p.ServedByOthers(),
		Namespaces: x.bounds.quotaShares(p, w),
	}
	if c.Cooling > 0 {
		state.NextFree = x.state.Until(c.NextFree)
	}
	if p.MaxPerHost > 0 && w.Host.IsValid() {
		share := x.bounds.hostShare(p, w, nil)
		state.Host, state.HostShare = w.Host, &share
	}
	return state
}

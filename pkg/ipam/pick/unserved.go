package pick

import (
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// unserved returns why no pool fits a request.
func (x *Picker) unserved(w ipam.PickRequest) *ipam.Refusal {
	switch {
	case w.Ahead && len(w.Pools) == 0:
		return ipam.RefuseFacts(ipam.ReasonNamespaceNotServed, explain.Facts{Kind: explain.NoPoolForClaim,
			Namespace: w.Namespace})
	case !w.Host.IsValid() && !w.ByHand() && !w.Ahead:
		return ipam.RefuseFacts(ipam.ReasonMissingField, explain.Facts{Kind: explain.NoHostNamed})
	case len(w.Pools) > 0:
		missing := func(name string) bool { return x.state.Pools.ByName[name] == nil }
		return x.unservedBy(w.Pools[max(0, slices.IndexFunc(w.Pools, missing))], w)
	}
	var listed []*memory.PoolState
	serving := false
	for _, p := range x.state.Pools.Roots {
		if p.Lists(w) {
			listed = append(listed, p)
			serving = serving || x.state.Pools.ServesNamespace(p, w)
		}
	}
	slices.SortFunc(listed, memory.Preference)
	facts := explain.Facts{
		Host: w.Host, Namespace: w.Namespace, Network: w.Network, Pools: memory.PoolNames(listed),
		Own: x.state.Pools.OwnNames(w),
	}
	switch {
	case len(listed) == 0:
		facts.Kind = explain.HostInNoPool
		return ipam.RefuseFacts(ipam.ReasonHostNotInPool, facts)
	case !serving:
		facts.Kind, facts.Pool = explain.HostNotForNamespace, listed[0].Name
		return ipam.RefuseFacts(ipam.ReasonNamespaceNotServed, facts)
	default:
		facts.Kind = explain.HostNotOfNetwork
		return ipam.RefuseFacts(ipam.ReasonNetworkNotFound, facts)
	}
}

// unservedBy returns why a pool that a request names does not fit.
func (x *Picker) unservedBy(name string, w ipam.PickRequest) *ipam.Refusal {
	p, ok := x.state.Pools.ByName[name]
	facts := explain.Facts{Pool: name, Host: w.Host, Namespace: w.Namespace, Network: w.Network}
	switch {
	case !ok:
		facts.Kind = explain.NoSuchPool
		return ipam.RefuseFacts(ipam.ReasonNotFound, facts)
	case !p.Lists(w):
		facts.Kind, facts.Whole, facts.HostSubnets = explain.PoolNotForHost, p.CountedAs(), p.HostSubnets.String()
		if p.HostSelector != nil {
			facts.HostSelector = p.HostSelector.String()
		}
		return ipam.RefuseFacts(ipam.ReasonHostNotInPool, facts)
	case !x.state.Pools.ServesNamespace(p, w):
		facts.Kind, facts.Block = explain.PoolNotForNamespace, p.Block
		return ipam.RefuseFacts(ipam.ReasonNamespaceNotServed, facts)
	default:
		facts.Kind = explain.PoolNotOfNetwork
		return ipam.RefuseFacts(ipam.ReasonNetworkNotFound, facts)
	}
}

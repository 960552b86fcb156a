package ipam

import (
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/explain"
)

// unserved says why no pool fits a request.
func (x *picker) unserved(w PickRequest) *Refusal {
	switch {
	case w.Ahead && w.Pool == "":
		return refuse(ReasonNamespaceNotServed, explain.Facts{Kind: explain.NoPoolForClaim, Namespace: w.Namespace})
	case !w.Host.IsValid() && !w.byHand() && !w.Ahead:
		return refuse(ReasonMissingField, explain.Facts{Kind: explain.NoHostNamed})
	case w.Pool != "":
		return x.unservedBy(w.Pool, w)
	}
	var listed []*poolState
	serving := false
	for _, p := range x.pools {
		if p.lists(w) {
			listed = append(listed, p)
			serving = serving || x.servesNamespace(p, w)
		}
	}
	slices.SortFunc(listed, preference)
	facts := explain.Facts{Host: w.Host, Namespace: w.Namespace, Network: w.Network, Pools: poolNames(listed)}
	switch {
	case len(listed) == 0:
		facts.Kind = explain.HostInNoPool
		return refuse(ReasonHostNotInPool, facts)
	case !serving:
		facts.Kind, facts.Pool = explain.HostNotForNamespace, listed[0].Name
		return refuse(ReasonNamespaceNotServed, facts)
	default:
		facts.Kind = explain.HostNotOfNetwork
		return refuse(ReasonNetworkNotFound, facts)
	}
}

// unservedBy says why the one pool that a request names does not fit.
func (x *picker) unservedBy(name string, w PickRequest) *Refusal {
	p, ok := x.pools[name]
	facts := explain.Facts{Pool: name, Host: w.Host, Namespace: w.Namespace, Network: w.Network}
	switch {
	case !ok:
		facts.Kind = explain.NoSuchPool
		return refuse(ReasonNotFound, facts)
	case !p.lists(w):
		facts.Kind, facts.HostSubnets = explain.PoolNotForHost, p.HostSubnets.String()
		return refuse(ReasonHostNotInPool, facts)
	case !x.servesNamespace(p, w):
		facts.Kind = explain.PoolNotForNamespace
		return refuse(ReasonNamespaceNotServed, facts)
	default:
		facts.Kind = explain.PoolNotOfNetwork
		return refuse(ReasonNetworkNotFound, facts)
	}
}

package ipam

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// BoundsKept reports whether what a namespace keeps of the pool without using it is bounded by what the pool has free:
// the pool serves every namespace, and says nothing of how much this one may have.
func (p Pool) BoundsKept(namespace string) bool {
	_, quota := p.Quota(namespace)
	return !quota && namespace != "" && !p.Block && p.InDefaultChain()
}

// overKept reports whether a request would have another address kept of a pool of which its namespace keeps more,
// unused, than there are free. a is the address where it is known already: one that is kept or in use makes no
// difference. An operator who names the pool is not bound by it.
func (x *bounds) overKept(p *PoolState, w PickRequest, a netip.Addr) bool {
	if !w.Keeps || w.Ahead || w.byHand() || !p.BoundsKept(w.Namespace) {
		return false
	}
	if r := x.state.Leases.Record(a); a.IsValid() && r != nil && r.State != lease.Available {
		return false
	}
	return uint64(x.state.Usage.Kept[ledger.Charge{Pool: p.CountedAs(), Namespace: w.Namespace}]) > p.free()
}

// keepsTooMany refuses an address of a pool of which the namespace of a request keeps more than there are free.
func (x *bounds) keepsTooMany(p *PoolState, w PickRequest) *Refusal {
	return RefuseFacts(ReasonQuotaExceeded, explain.Facts{
		Kind: explain.KeepsTooMany, Who: w.Who, Namespace: w.Namespace, Pool: p.Name, Whole: p.CountedAs(),
		Share: explain.Share{Has: x.state.Usage.Kept[ledger.Charge{Pool: p.CountedAs(), Namespace: w.Namespace}],
			Limit: int(min(p.free(), 1<<30))},
	})
}

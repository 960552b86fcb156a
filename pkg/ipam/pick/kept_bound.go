package pick

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// overKept reports whether a request would have another address kept of a pool of which its namespace keeps more,
// unused, than there are free. a is the address where it is known already: one that is kept or in use makes no
// difference. An operator who names the pool is not bound by it.
func (x *bounds) overKept(p *memory.PoolState, w ipam.PickRequest, a netip.Addr) bool {
	if !w.Keeps || w.Ahead || w.ByHand() || !p.BoundsKept(w.Namespace) {
		return false
	}
	if r := x.state.Leases.Record(a); a.IsValid() && r != nil && r.State != lease.Available {
		return false
	}
	return uint64(x.state.Usage.Kept[ledger.Charge{Pool: p.CountedAs(), Namespace: w.Namespace}]) > p.Free()
}

// keepsTooMany refuses an address of a pool of which the namespace of a request keeps more than there are free.
func (x *bounds) keepsTooMany(p *memory.PoolState, w ipam.PickRequest) *ipam.Refusal {
	return ipam.RefuseFacts(ipam.ReasonQuotaExceeded, explain.Facts{
		Kind: explain.KeepsTooMany, Who: w.Who, Namespace: w.Namespace, Pool: p.Name, Whole: p.CountedAs(),
		Share: explain.Share{Has: x.state.Usage.Kept[ledger.Charge{Pool: p.CountedAs(), Namespace: w.Namespace}],
			Limit: int(min(p.Free(), 1<<30))},
	})
}

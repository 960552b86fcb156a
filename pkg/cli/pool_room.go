package cli

import (
	"math"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// room is how many addresses a pool hands out or has leases on, how many of them are free, and how many are leases of
// other pools with the same addresses.
type room struct {
	total, free, others int64
	// counted is whether a controller counted: it knows what other pools and nodes take away.
	counted bool
}

// othersOf returns how many addresses of a pool are none of its own and not free, as its status says: leases
// of other pools with the same addresses, and leases whose objects are lost.
func othersOf(p *v1.BCSNetPool) int64 {
	s := p.Status
	return max(0, s.Capacity-s.Available-s.Active-s.Reserved-s.Cooling)
}

// roomOf reads the room of a pool from its status, which holds some of the addresses of its spec, and others beside them.
// Where the status does not speak of the pool as it is now, those are counted.
func roomOf(p *v1.BCSNetPool, plan ipam.Pool, held, beside int64) room {
	if s := p.Status; resource.Counted(p) && s.ObservedGeneration == p.Generation {
		r := room{total: s.Capacity, free: s.Available, counted: true}
		if meta.IsStatusConditionTrue(s.Conditions, v1.ConditionOverlap) {
			r.others = max(0, r.total-r.free-held-beside)
		}
		return r
	}
	total := ipaddr.SizeOfSet(resource.UsableOf(plan))
	free := total - min(total, uint64(max(0, held)))
	all := min(total, math.MaxInt64-uint64(max(0, beside))) + uint64(max(0, beside))
	return room{total: int64(all), free: int64(min(free, math.MaxInt64))}
}

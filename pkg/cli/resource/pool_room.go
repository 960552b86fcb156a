package resource

import (
	"math"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Room counts the addresses of a pool: all that it hands out or has leases on, those of them that are free, and those
// that are leases of other pools with the same addresses.
type Room struct {
	Total, Free, Others int64
	// Counted: a controller counted, which knows what other pools and nodes take away.
	Counted bool
}

// OthersOf returns how many addresses of a pool are none of its own and not free, as its status says: leases
// of other pools with the same addresses, and leases whose objects are lost.
func OthersOf(p *v1.BCSNetPool) int64 {
	s := p.Status
	return max(0, s.Capacity-s.Available-s.Active-s.Reserved-s.Cooling)
}

// RoomOf reads the room of a pool from its status, which holds some of the addresses of its spec, and others beside
// them. Where the status does not speak of the pool as it is now, those are counted.
func RoomOf(p *v1.BCSNetPool, plan ipam.Pool, held, beside int64) Room {
	if s := p.Status; Counted(p) && s.ObservedGeneration == p.Generation {
		r := Room{Total: s.Capacity, Free: s.Available, Counted: true}
		if meta.IsStatusConditionTrue(s.Conditions, v1.ConditionOverlap) {
			r.Others = max(0, r.Total-r.Free-held-beside)
		}
		return r
	}
	total := ipaddr.SizeOfSet(plan.Usable())
	free := total - min(total, uint64(max(0, held)))
	all := min(total, math.MaxInt64-uint64(max(0, beside))) + uint64(max(0, beside))
	return Room{Total: int64(all), Free: int64(min(free, math.MaxInt64))}
}

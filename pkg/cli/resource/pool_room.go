package resource

import (
	"math"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Room counts the addresses of a pool: those that it serves or has leases on, the free ones, and those that are leased
// for overlapping pools.
type Room struct {
	Total, Free, Others int64
	// Counted: a controller made the counts, which consider other pools and nodes.
	Counted bool
}

// OthersOf returns, by a pool's status, how many addresses are neither free nor its own: leases of overlapping pools,
// and leases whose objects are lost.
func OthersOf(p *v1.BCSNetPool) int64 {
	s := p.Status
	return max(0, s.Capacity-s.Available-s.Active-s.Reserved-s.Cooling)
}

// RoomOf returns the room of a pool from its status, or computed from its plan if the status is out of date. held
// counts taken addresses of the spec, beside taken addresses outside it.
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

package ipam

import (
	"math"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Headroom says how many addresses a pool can still give, and to whom.
type Headroom struct {
	// Network that the pool is part of, empty for none; Family is its family.
	Network string
	Family  ipaddr.Family
	// Free addresses can be had by anybody, Retained ones by the claims that they are kept for. Addresses that an
	// operator set aside are neither, nor are those that rest.
	Free, Retained uint64
	// MaxPerHost is the number of addresses of the pool that one host may have; 0 for no bound.
	MaxPerHost int
}

// On returns what the pool can still give to a host that has so many addresses of it.
func (s Headroom) On(held int) Headroom {
	if s.MaxPerHost > 0 {
		room := uint64(max(0, s.MaxPerHost-held))
		s.Free = min(s.Free, room)
		s.Retained = min(s.Retained, room-s.Free)
	}
	return s
}

// Room returns how many pods some pools have addresses for: of a network with both families a pod takes one of each.
func Room(pools []Headroom) uint64 {
	var alone uint64
	type families struct {
		left    [2]uint64
		offered [2]bool
	}
	networks := map[string]families{}
	for _, s := range pools {
		n := ipaddr.AddSaturated(s.Free, s.Retained)
		if s.Network == "" {
			alone = ipaddr.AddSaturated(alone, n)
			continue
		}
		f := networks[s.Network]
		f.left[s.Family], f.offered[s.Family] = ipaddr.AddSaturated(f.left[s.Family], n), true
		networks[s.Network] = f
	}
	for _, f := range networks {
		n := uint64(math.MaxUint64)
		for family := range f.left {
			if f.offered[family] {
				n = min(n, f.left[family])
			}
		}
		alone = ipaddr.AddSaturated(alone, n)
	}
	return alone
}

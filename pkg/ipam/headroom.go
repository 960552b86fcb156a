package ipam

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Headroom is what a pool can still give.
type Headroom struct {
	// Network that the pool is part of, empty for none; Family is its family.
	Network string
	Family  ipaddr.Family
	// Free addresses can be had by anybody, Retained ones by the claims that they are kept for. Addresses that an
	// operator set aside are neither, nor are those that rest.
	Free, Retained uint64
	// MaxPerHost is how many addresses of the pool one host may have; 0 for no bound.
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

// Headroom returns what a pool can still give.
func (x *Picker) Headroom(p *PoolState) Headroom {
	s := Headroom{Network: p.Network, Family: p.Family(), MaxPerHost: p.MaxPerHost}
	if p.Serves() {
		x.state.ExpireCooldowns(p)
		s.Free = p.free()
	}
	if p.Terminating {
		return s
	}
	if p.Split != nil {
		s.Retained = uint64(p.OfBlocks.Retained)
		if p.OfBlocks.Draining == 0 {
			return x.addRetained(s, x.state.Members.ByPool[p.Name])
		}
		s.Retained = 0
	}
	for m := range x.state.MembersOf(p) {
		s = x.addRetained(s, m)
	}
	return s
}

func (x *Picker) addRetained(s Headroom, m *ledger.Members) Headroom {
	if m == nil {
		return s
	}
	s.Retained += uint64(m.Retained)
	for r := range m.Draining { // nobody gets these back
		if r.State == lease.Reserved && r.Claim() != "" {
			s.Retained--
		}
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

// KindOf returns what Index.KindOf does.
func (x *Picker) KindOf(host netip.Addr, expected func(pool string) []netip.Addr) string {
	var kind strings.Builder
	for _, t := range []*HostTable{&x.state.Pools.Unbound, &x.state.Pools.BoundHosts} {
		for p := range t.Of(host) {
			kind.WriteString(p.Name + ",")
			if p.MaxPerHost > 0 {
				n, coming := x.bounds.onHost(p, PickRequest{Host: host, Expected: expected}, nil)
				fmt.Fprintf(&kind, "%d,", max(0, p.MaxPerHost-n-coming))
			}
		}
	}
	return kind.String()
}

// mayTake reports whether a request takes addresses of a pool by its families.
func (x *Picker) mayTake(p *PoolState, w PickRequest) bool {
	if !w.Families.Required() {
		return w.Families.Wants(p.Family())
	}
	together := x.state.Pools.together(p, w)
	return len(w.Sets) > 0 || Offers(together, ipaddr.IPv4) && Offers(together, ipaddr.IPv6)
}

// RoomFor returns what Index.RoomFor does.
func (x *Picker) RoomFor(w PickRequest) uint64 {
	var spares []Headroom
	for p := range x.state.Pools.Fitting(w) {
		if !p.Valid() || len(w.Sets) > 0 && !slices.ContainsFunc(w.Sets, p.Among) || !x.mayTake(p, w) {
			continue
		}
		s := x.Headroom(p)
		if s.Retained = 0; p.Split != nil {
			s.Free = min(s.Free, p.growing())
		}
		if p.MaxPerHost > 0 {
			n, coming := x.bounds.onHost(p, w, nil)
			s = s.On(n + coming)
		}
		if left, bounded := x.bounds.leftIn(p, w); bounded {
			s.Free = min(s.Free, uint64(left))
		}
		if w.Families.Single() {
			s.Network = "" // a pod takes of it alone
		}
		spares = append(spares, s)
	}
	return Room(spares)
}

package pick

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// Headroom returns what a pool can still give.
func (x *Picker) Headroom(p *memory.PoolState) ipam.Headroom {
	s := ipam.Headroom{Network: p.Network, Family: p.Family(), MaxPerHost: p.MaxPerHost}
	if p.Serves() {
		x.state.ExpireCooldowns(p)
		s.Free = p.Free()
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

func (x *Picker) addRetained(s ipam.Headroom, m *ledger.Members) ipam.Headroom {
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

// KindOf returns what Index.KindOf does.
func (x *Picker) KindOf(host netip.Addr, expected func(pool string) []netip.Addr) string {
	var kind strings.Builder
	for _, t := range []*memory.HostTable{&x.state.Pools.Unbound, &x.state.Pools.BoundHosts} {
		for p := range t.Of(host) {
			kind.WriteString(p.Name + ",")
			if p.MaxPerHost > 0 {
				n, coming := x.bounds.onHost(p, ipam.PickRequest{Host: host, Expected: expected}, nil)
				fmt.Fprintf(&kind, "%d,", max(0, p.MaxPerHost-n-coming))
			}
		}
	}
	return kind.String()
}

// mayTake reports whether a request takes addresses of a pool by its families.
func (x *Picker) mayTake(p *memory.PoolState, w ipam.PickRequest) bool {
	if !w.Families.Required() {
		return w.Families.Wants(p.Family())
	}
	together := x.state.Pools.Together(p, w)
	return len(w.Sets) > 0 || memory.Offers(together, ipaddr.IPv4) && memory.Offers(together, ipaddr.IPv6)
}

// RoomFor returns what Index.RoomFor does.
func (x *Picker) RoomFor(w ipam.PickRequest) uint64 {
	var spares []ipam.Headroom
	for p := range x.state.Pools.Fitting(w) {
		if !p.Valid() || len(w.Sets) > 0 && !slices.ContainsFunc(w.Sets, p.Among) || !x.mayTake(p, w) {
			continue
		}
		s := x.Headroom(p)
		if s.Retained = 0; p.Split != nil {
			s.Free = min(s.Free, p.Growing())
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
	return ipam.Room(spares)
}

package memory

import (
	"iter"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// HostTable finds the pools of a host: by its address and, for each prefix length that host subnets have, by its subnet
// of that length. No list is empty.
type HostTable struct {
	hosts    map[netip.Addr][]*PoolState
	networks map[netip.Prefix][]*PoolState
	// lengths counts the networks of each prefix length, by family.
	lengths [2][129]int
}

// newHostTable returns a table without pools.
func newHostTable() HostTable {
	return HostTable{hosts: map[netip.Addr][]*PoolState{}, networks: map[netip.Prefix][]*PoolState{}}
}

// lengthsOf returns the counts for the family of an address.
func (t *HostTable) lengthsOf(a netip.Addr) []int {
	return t.lengths[ipaddr.FamilyOf(a)][:a.BitLen()+1]
}

// enter lists a pool under its hosts.
func (t *HostTable) enter(p *PoolState) {
	for h := range p.ByAddress() {
		t.enterHost(h, p)
	}
	for n := range p.HostSubnets {
		if len(t.networks[n]) == 0 {
			t.lengthsOf(n.Addr())[n.Bits()]++
		}
		enter(t.networks, n, p)
	}
}

// leave undoes enter.
func (t *HostTable) leave(p *PoolState) {
	for h := range p.ByAddress() {
		t.leaveHost(h, p)
	}
	for n := range p.HostSubnets {
		if leave(t.networks, n, p); len(t.networks[n]) == 0 {
			t.lengthsOf(n.Addr())[n.Bits()]--
		}
	}
}

// enterHost lists a pool under one more host.
func (t *HostTable) enterHost(h netip.Addr, p *PoolState) { enter(t.hosts, h, p) }

// leaveHost undoes enterHost.
func (t *HostTable) leaveHost(h netip.Addr, p *PoolState) { leave(t.hosts, h, p) }

// Of returns the pools of a host in the order of preference, each once. It computes them one by one.
func (t *HostTable) Of(host netip.Addr) iter.Seq[*PoolState] {
	if len(t.networks) == 0 {
		return slices.Values(t.hosts[host])
	}
	return func(yield func(*PoolState) bool) {
		lists := t.lists(host)
		for {
			var next *PoolState
			for _, l := range lists {
				if len(l) > 0 && (next == nil || Preference(l[0], next) < 0) {
					next = l[0]
				}
			}
			for i, l := range lists {
				if len(l) > 0 && l[0] == next {
					lists[i] = l[1:]
				}
			}
			if next == nil || !yield(next) {
				return
			}
		}
	}
}

// lists returns the lists that have the pools of a host, each in the order of preference.
func (t *HostTable) lists(host netip.Addr) [][]*PoolState {
	lists := [][]*PoolState{t.hosts[host]}
	for bits, n := range t.lengthsOf(host) {
		if p, err := host.Prefix(bits); n > 0 && err == nil {
			lists = append(lists, t.networks[p])
		}
	}
	return lists
}

package ipam

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Networks are subnets of hosts. They do not change once a pool has them.
type Networks map[netip.Prefix]struct{}

// few networks are asked one by one, more by the prefix lengths that a host can have.
const few = 8

// Of is the smallest of the networks that a host lies in.
func (n Networks) Of(host netip.Addr) (best netip.Prefix, ok bool) {
	if len(n) <= few {
		for p := range n {
			if p.Contains(host) && (!ok || p.Bits() > best.Bits()) {
				best, ok = p, true
			}
		}
		return best, ok
	}
	for bits := host.BitLen(); bits >= 0; bits-- {
		p, err := host.Prefix(bits)
		if _, ok := n[p]; ok && err == nil {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// Sorted are the networks in order.
func (n Networks) Sorted() []netip.Prefix {
	out := make([]netip.Prefix, 0, len(n))
	for p := range n {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	return out
}

// String names the first few of the networks.
func (n Networks) String() string {
	var texts []string
	for _, p := range n.Sorted() {
		texts = append(texts, p.String())
	}
	return explain.FirstFew(texts, "networks")
}

// Draws says whether a host may draw from the pool: it is listed, or lies in one of the host subnets.
func (p Pool) Draws(host netip.Addr) bool {
	if _, listed := p.Hosts[host]; listed {
		return true
	}
	_, covered := p.HostSubnets.Of(host)
	return covered
}

// NoHosts says whether the pool is for no host at all.
func (p Pool) NoHosts() bool { return len(p.Hosts)+len(p.HostSubnets) == 0 }

// hostTable is where requests look for the pools of a host that are bound to no namespace: by its address and,
// for each length that host subnets have, by its subnet of that length.
type hostTable struct {
	hosts    map[netip.Addr][]*poolState
	networks map[netip.Prefix][]*poolState
	// lengths counts the networks of each prefix length, by family.
	lengths [2][129]int
}

func newHostTable() hostTable {
	return hostTable{hosts: map[netip.Addr][]*poolState{}, networks: map[netip.Prefix][]*poolState{}}
}

// lengthsOf are the counts for the family of an address.
func (t *hostTable) lengthsOf(a netip.Addr) []int {
	return t.lengths[ipaddr.FamilyOf(a)][:a.BitLen()+1]
}

func (t *hostTable) enter(p *poolState) {
	for h := range p.Hosts {
		enter(t.hosts, h, p)
	}
	for n := range p.HostSubnets {
		if len(t.networks[n]) == 0 {
			t.lengthsOf(n.Addr())[n.Bits()]++
		}
		enter(t.networks, n, p)
	}
}

func (t *hostTable) leave(p *poolState) {
	for h := range p.Hosts {
		leave(t.hosts, h, p)
	}
	for n := range p.HostSubnets {
		if leave(t.networks, n, p); len(t.networks[n]) == 0 {
			t.lengthsOf(n.Addr())[n.Bits()]--
		}
	}
}

// of are the pools of a host in the order of preference, each once. It looks at no more of them than its user
// does.
func (t *hostTable) of(host netip.Addr) iter.Seq[*poolState] {
	if len(t.networks) == 0 {
		return slices.Values(t.hosts[host])
	}
	return func(yield func(*poolState) bool) {
		lists := t.lists(host)
		for {
			var next *poolState
			for _, l := range lists {
				if len(l) > 0 && (next == nil || preference(l[0], next) < 0) {
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

// lists are the lists that have the pools of a host, each in the order of preference.
func (t *hostTable) lists(host netip.Addr) [][]*poolState {
	lists := [][]*poolState{t.hosts[host]}
	for bits, n := range t.lengthsOf(host) {
		if p, err := host.Prefix(bits); n > 0 && err == nil {
			lists = append(lists, t.networks[p])
		}
	}
	return lists
}

// uncounted stands for a count that nodes or hosts have changed since.
const uncounted = -1

// HostCount is how many hosts may draw from a pool: those that it lists, and the nodes in its host subnets. It looks
// at the nodes only when one of them, or the pool, has changed.
func (x *Index) HostCount(name string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, ok := x.pools[name]
	if !ok {
		return 0
	}
	if p.hosts == uncounted {
		p.hosts = len(p.Hosts) + x.nodesInside(p)
	}
	return p.hosts
}

// nodesInside counts the nodes that may draw from a pool by its host subnets alone.
func (x *Index) nodesInside(p *poolState) (n int) {
	if len(p.HostSubnets) == 0 {
		return 0
	}
	for _, addrs := range x.nodes {
		listed := slices.ContainsFunc(addrs, func(a netip.Addr) bool { _, ok := p.Hosts[a]; return ok })
		if !listed && slices.ContainsFunc(addrs, p.Draws) {
			n++
		}
	}
	return n
}

// Covering are the pools that have one of some addresses in their host subnets, by name.
func (x *Index) Covering(addrs []netip.Addr) (names []string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, p := range x.pools {
		if slices.ContainsFunc(addrs, func(a netip.Addr) bool { _, ok := p.HostSubnets.Of(a); return ok }) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/explain"
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

// uncounted stands for a count that nodes or hosts have changed since.
const uncounted = -1

// HostCount is how many hosts may draw from a pool: those that it lists, and the nodes in its host subnets. It looks
// at the nodes only when one of them, or the pool, has changed.
func (x *poolView) HostCount(name string) int {
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
func (x *state) nodesInside(p *poolState) (n int) {
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
func (x *poolView) Covering(addrs []netip.Addr) (names []string) {
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

package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
)

// Networks are subnets of hosts. They do not change once a pool has them.
type Networks map[netip.Prefix]struct{}

// few networks are asked one by one, more by the prefix lengths that a host can have.
const few = 8

// Of returns the smallest of the networks that a host lies in.
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

// Sorted returns the networks in order.
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

// Draws reports whether a host may draw from the pool: it is listed, its node matches the host selector, or it lies in
// one of the host subnets.
func (p Pool) Draws(host netip.Addr) bool {
	_, listed := p.Hosts[host]
	return listed || p.Covers(host)
}

// Covers reports whether a host may draw from the pool whether or not it is listed.
func (p Pool) Covers(host netip.Addr) bool {
	if p.Selects(host) {
		return true
	}
	_, inside := p.HostSubnets.Of(host)
	return inside
}

// Selects reports whether the host selector of the pool matches the node of a host.
func (p Pool) Selects(host netip.Addr) bool {
	_, selected := slices.BinarySearchFunc(p.Selected, host, netip.Addr.Compare)
	return selected
}

// NoHosts reports whether the pool is for no host at all.
func (p Pool) NoHosts() bool { return len(p.Hosts)+len(p.HostSubnets)+len(p.Selected) == 0 }

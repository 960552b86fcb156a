package ipam

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
)

// SameSelector reports whether two selectors, nil for none, choose alike.
func SameSelector(a, b Selector) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.String() == b.String()
}

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

// Node has what matters of a node. Its labels do not change once it was given to SetNode.
type Node struct {
	// Addrs are the addresses that the node has itself. Internal are those of them that are InternalIPs: by these it
	// draws where a host selector matches it.
	Addrs, Internal []netip.Addr
	Labels          map[string]string
}

// Equal reports whether two nodes have the same addresses and labels.
func (n Node) Equal(o Node) bool {
	return slices.Equal(n.Addrs, o.Addrs) && slices.Equal(n.Internal, o.Internal) && maps.Equal(n.Labels, o.Labels)
}

// SelectsNode reports whether the host selector of the pool matches a node.
func (p Pool) SelectsNode(n Node) bool {
	return p.HostSelector != nil && p.HostSelector.Matches(n.Labels)
}

// WithNodes returns the pool with the hosts whose nodes its host selector matches. The index finds them by itself.
func (p Pool) WithNodes(nodes iter.Seq[Node]) Pool {
	p.Selected = nil
	if p.HostSelector == nil {
		return p
	}
	for n := range nodes {
		if p.SelectsNode(n) {
			p.Selected = append(p.Selected, n.Internal...)
		}
	}
	slices.SortFunc(p.Selected, netip.Addr.Compare)
	p.Selected = slices.Compact(p.Selected)
	return p
}

// ByAddress returns the hosts that may draw from the pool only by their address: those that it lists, and those that
// its selector chooses, each once.
func (p Pool) ByAddress() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for h := range p.Hosts {
			if !yield(h) {
				return
			}
		}
		for _, h := range p.Selected {
			if _, listed := p.Hosts[h]; !listed && !yield(h) {
				return
			}
		}
	}
}

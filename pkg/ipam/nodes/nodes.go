// Package nodes has the Nodes of the cluster by their names and addresses, and knows which of them a pool covers. It
// has no lock: its callers hold the lock of the index.
package nodes

import (
	"iter"
	"maps"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Table has the nodes by name, and the names of those that claim an address, sorted. No list of names is empty.
type Table struct {
	byName map[string]ipam.Node
	byAddr map[netip.Addr][]string
}

// New returns a table without nodes.
func New() Table {
	return Table{byName: map[string]ipam.Node{}, byAddr: map[netip.Addr][]string{}}
}

// Set replaces the node of a name and returns the old one. A node without addresses and labels is removed.
func (t *Table) Set(name string, n ipam.Node) (old ipam.Node) {
	old = t.byName[name]
	for _, a := range old.Addrs {
		if t.byAddr[a] = without(t.byAddr[a], name); len(t.byAddr[a]) == 0 {
			delete(t.byAddr, a)
		}
	}
	for _, a := range n.Addrs {
		if at, found := slices.BinarySearch(t.byAddr[a], name); !found {
			t.byAddr[a] = slices.Insert(t.byAddr[a], at, name)
		}
	}
	t.byName[name] = ipam.Node{Addrs: slices.Clone(n.Addrs), Internal: slices.Clone(n.Internal), Labels: n.Labels}
	if len(n.Addrs)+len(n.Labels) == 0 {
		delete(t.byName, name)
	}
	return old
}

// Get returns the node of a name; the zero Node if there is none.
func (t *Table) Get(name string) ipam.Node { return t.byName[name] }

// All yields the nodes in no order.
func (t *Table) All() iter.Seq[ipam.Node] { return maps.Values(t.byName) }

// Has reports whether a node has an address itself.
func (t *Table) Has(a netip.Addr) bool { _, ok := t.byAddr[a]; return ok }

// Of names the node that has an address itself, the first by name.
func (t *Table) Of(a netip.Addr) (string, bool) {
	if names := t.byAddr[a]; len(names) > 0 {
		return names[0], true
	}
	return "", false
}

// Addresses yields the addresses that nodes have themselves, in no order.
func (t *Table) Addresses() iter.Seq[netip.Addr] { return maps.Keys(t.byAddr) }

// Machine yields the addresses of the machine that a host's address belongs to. If only one Node claims the host's
// address, these are the addresses that only this Node claims; else only the host's address.
func (t *Table) Machine(host netip.Addr) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		names := t.byAddr[host]
		if len(names) != 1 {
			yield(host)
			return
		}
		for _, a := range t.byName[names[0]].Addrs {
			if len(t.byAddr[a]) == 1 && !yield(a) {
				return
			}
		}
	}
}

// Selects reports whether the selector of a pool matches a node that has an address as an internal one. Two nodes can
// have it for a while.
func (t *Table) Selects(p *ipam.Pool, a netip.Addr) bool {
	return slices.ContainsFunc(t.byAddr[a], func(name string) bool {
		n := t.byName[name]
		return p.SelectsNode(n) && slices.Contains(n.Internal, a)
	})
}

// Covered counts the nodes that may draw from a pool without being listed.
func (t *Table) Covered(p *ipam.Pool) (n int) {
	if len(p.HostSubnets)+len(p.Selected) == 0 {
		return 0
	}
	for _, node := range t.byName {
		listed := slices.ContainsFunc(node.Addrs, func(a netip.Addr) bool { _, ok := p.Hosts[a]; return ok })
		if !listed && slices.ContainsFunc(node.Addrs, p.Covers) {
			n++
		}
	}
	return n
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}

package hosts

import (
	"maps"
	"net/netip"
	"slices"
)

// Table finds Nodes by their names and by the addresses that they claim. Several Nodes may claim one address: a Node
// was left behind when its machine was reinstalled, or an annotation is wrong. It is not known which of them is right.
// Therefore such an address is alive while any of the Nodes is, a fact about it counts only if it holds for each of
// them, and the annotation lets none of them act for it.
type Table struct {
	nodes map[string]Node
	by    map[netip.Addr][]string // sorted
}

// NewTable returns a table with some Nodes.
func NewTable(nodes ...Node) *Table {
	t := &Table{nodes: map[string]Node{}, by: map[netip.Addr][]string{}}
	for _, n := range nodes {
		t.Set(n)
	}
	return t
}

// Set adds a Node, and returns the Node of that name that it replaces.
func (t *Table) Set(n Node) (before Node) {
	before = t.Remove(n.Name)
	for _, a := range n.Addrs {
		if at, found := slices.BinarySearch(t.by[a], n.Name); !found {
			t.by[a] = slices.Insert(t.by[a], at, n.Name)
		}
	}
	t.nodes[n.Name] = n
	return before
}

// Remove removes the Node with a name, and returns it.
func (t *Table) Remove(name string) (before Node) {
	before = t.nodes[name]
	for _, a := range before.Addrs {
		t.by[a] = slices.DeleteFunc(t.by[a], func(other string) bool { return other == name })
		if len(t.by[a]) == 0 {
			delete(t.by, a)
		}
	}
	delete(t.nodes, name)
	return before
}

// Get returns the Node of a name; the zero Node if there is none.
func (t *Table) Get(name string) Node { return t.nodes[name] }

// All returns the Nodes in the order of their names.
func (t *Table) All() (all []Node) {
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		all = append(all, t.nodes[name])
	}
	return all
}

// At returns the Nodes that claim an address, sorted by name; none if no Node does.
func (t *Table) At(a netip.Addr) (all []Node) {
	for _, name := range t.by[a] {
		all = append(all, t.nodes[name])
	}
	return all
}

// Claimed reports whether any Node claims an address.
func (t *Table) Claimed(a netip.Addr) bool { return len(t.by[a]) > 0 }

// Best returns the Node that represents an address: a ready one if any that claims it is ready, else the first by name.
func (t *Table) Best(a netip.Addr) (n Node, ok bool) {
	all := t.At(a)
	if i := slices.IndexFunc(all, func(n Node) bool { return n.Ready }); i >= 0 {
		return all[i], true
	}
	if len(all) == 0 {
		return Node{}, false
	}
	return all[0], true
}

// ActsFor returns the addresses for which callers on a Node may act: those of its status, and those of the annotation
// that no other Node claims. A kubelet may annotate its own Node if no policy refuses it.
func (t *Table) ActsFor(name string) (addrs []netip.Addr) {
	n := t.nodes[name]
	for _, a := range n.Addrs {
		if !slices.Contains(n.Further, a) || len(t.by[a]) == 1 {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// Addrs returns all addresses that Nodes claim, sorted.
func (t *Table) Addrs() []netip.Addr { return slices.SortedFunc(maps.Keys(t.by), netip.Addr.Compare) }

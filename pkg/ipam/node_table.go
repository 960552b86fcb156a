package ipam

import (
	"net/netip"
	"slices"
)

// nodeTable has the addresses that nodes have themselves, by node and by address; names of nodes are sorted.
type nodeTable struct {
	nodes  map[string][]netip.Addr
	nodeIP map[netip.Addr][]string
}

func newNodeTable() nodeTable {
	return nodeTable{nodes: map[string][]netip.Addr{}, nodeIP: map[netip.Addr][]string{}}
}

func (x *nodeTable) nodeOf(a netip.Addr) (string, bool) {
	if names := x.nodeIP[a]; len(names) > 0 {
		return names[0], true
	}
	return "", false
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}

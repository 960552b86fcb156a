package resource

import (
	"context"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// FoundHost is a host and its node.
type FoundHost struct {
	Host netip.Addr
	// Addrs are all IPs of the node; only Host if there is no node.
	Addrs []netip.Addr
	Node  *Node
	// Nodes are all nodes with one of the addresses. Pools select the host by the labels of any of them.
	Nodes []Node
	// Blind: the nodes cannot be read, or there are none.
	Blind bool
}

// CheckHost refuses a word that is neither the IP of a host nor a possible name of a node. The error is one of usage.
func CheckHost(word string) error {
	if MayBeNode(word) {
		return nil
	}
	_, err := ParseHosts([]string{word})
	return err
}

// FindHost finds the node of a host, or the host of a node. CheckHost must have accepted the word.
func FindHost(ctx context.Context, s *app.App, word string) (*FoundHost, error) {
	if MayBeNode(word) {
		n, err := GetNode(ctx, s, word)
		switch {
		case err != nil:
			return nil, err
		case len(n.Addrs) == 0:
			return nil, app.Refuse(app.ReasonNodeNotFound, "node %s has no IP", n.Name).
				WithHint("see it: kubectl get node %s -o wide", n.Name)
		}
		return &FoundHost{Host: n.Addrs[0], Addrs: n.Addrs, Node: &n, Nodes: []Node{n}}, nil
	}
	host, err := ipaddr.ParseAddr(word)
	if err != nil {
		return nil, err
	}
	h := &FoundHost{Host: host, Addrs: []netip.Addr{host}}
	nodes, err := ListNodes(ctx, s)
	if err != nil {
		h.Blind = true
		s.Say.Warn("nodes cannot be read, so it is unknown whether the host is a node: %v", err)
	}
	if len(nodes) == 0 {
		h.Blind = true // without any node, nothing is known of this host
	}
	for _, n := range nodes {
		if !slices.Contains(n.Addrs, host) {
			continue
		}
		if h.Nodes = append(h.Nodes, n); h.Node == nil || n.Ready && !h.Node.Ready { // alive while one of them is
			h.Node, h.Addrs = &n, n.Addrs
		}
	}
	return h, nil
}

// States of a host.
const (
	HostReady    = "ready"
	HostNotReady = "not-ready"
	HostGone     = "gone"
)

// HostIndex returns the index of a host in a list, in any notation; -1 if the list does not have it.
func HostIndex(list []string, h netip.Addr) int {
	return slices.IndexFunc(list, func(s string) bool { a, err := ipaddr.ParseAddr(s); return err == nil && a == h })
}

// HostAddrs returns the valid hosts of a list.
func HostAddrs(list []string) (out []netip.Addr) {
	for _, text := range list {
		if h, err := ipaddr.ParseAddr(text); err == nil {
			out = append(out, h)
		}
	}
	return out
}

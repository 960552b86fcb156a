package resource

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// HostsOf returns a pool whose method Draws decides which hosts may draw: the hosts of its spec, or of its parent's if
// a group has none, and the nodes that match the host selector. It ignores invalid entries of the spec.
func HostsOf(p Pool, nodes []Node) ipam.Pool {
	of := store.PoolHosts(p.BCSNetPool)
	if p.parent != nil {
		of.InheritHosts(store.PoolHosts(p.parent))
	}
	return of.WithNodes(Known(nodes))
}

// ListedHosts returns the IPs that a pool lists, or its parent if a group inherits the hosts.
func ListedHosts(p Pool) []netip.Addr {
	if p.parent != nil && InheritsHosts(p) {
		return HostAddrs(p.parent.Spec.Hosts)
	}
	return HostAddrs(p.Spec.Hosts)
}

// InheritsHosts reports whether a group has no hosts of its own, so that its parent's count.
func InheritsHosts(p Pool) bool {
	return p.Spec.Parent != "" && len(p.Spec.Hosts)+len(p.Spec.HostSubnets) == 0 && p.Spec.HostSelector == nil
}

// Serves reports whether a host may draw from a pool by one of its node's IPs.
func Serves(p Pool, addrs []netip.Addr, nodes []Node) bool {
	return slices.ContainsFunc(addrs, HostsOf(p, nodes).Draws)
}

// asksNodes reports whether the hosts of a pool depend on nodes.
func asksNodes(p Pool) bool {
	return len(p.Spec.HostSubnets) > 0 || p.Spec.HostSelector != nil || InheritsHosts(p)
}

// NodesFor reads the nodes if the hosts of one of the pools depend on them. If that fails, it warns which facts stay
// unknown.
func NodesFor(ctx context.Context, s *app.App, all ...Pool) []Node {
	if !slices.ContainsFunc(all, asksNodes) {
		return nil
	}
	nodes, err := ListNodes(ctx, s)
	if err != nil {
		s.Say.Warn("nodes cannot be read, so it is unknown which lie in the host subnets, or match the host "+
			"selector: %v",
			err)
	}
	return nodes
}

// Covered lists the nodes that may draw from a pool without being listed, each by one IP.
func Covered(p Pool, nodes []Node) (hosts []netip.Addr) {
	of := HostsOf(p, nodes)
	return coveredBy(of, nodes, of.Covers)
}

// InSubnets lists those of the Covered nodes that are in host subnets.
func InSubnets(p Pool, nodes []Node) (hosts []netip.Addr) {
	of := HostsOf(p, nil)
	return coveredBy(of, nodes, of.Covers)
}

// Selected names the nodes that match the host selector of a pool and have an internal IP.
func Selected(p Pool, nodes []Node) (names []string) {
	of := HostsOf(p, nil)
	for _, node := range nodes {
		if len(node.Internal) > 0 && of.HostSelector != nil && of.HostSelector.Matches(node.Labels) {
			names = append(names, node.Name)
		}
	}
	return names
}

func coveredBy(of ipam.Pool, nodes []Node, by func(netip.Addr) bool) (hosts []netip.Addr) {
	for _, n := range nodes {
		if slices.ContainsFunc(n.Addrs, func(a netip.Addr) bool { _, listed := of.Hosts[a]; return listed }) {
			continue
		}
		if i := slices.IndexFunc(n.Addrs, by); i >= 0 {
			hosts = append(hosts, n.Addrs[i])
		}
	}
	return hosts
}

// HostCell formats the number of hosts that may draw from a pool. If it depends on nodes, it comes from the pool's
// status.
func HostCell(p Pool) string {
	switch {
	case !asksNodes(p):
		return strconv.Itoa(len(p.Spec.Hosts))
	case !Counted(p.BCSNetPool):
		return ""
	default:
		return app.Count(p.Status.Hosts)
	}
}

// ForHosts describes the hosts of a pool: "2 hosts, those in 10.0.0.0/16 and the nodes with rack=7".
func ForHosts(p Pool) string {
	if InheritsHosts(p) {
		return "the hosts of pool " + p.Spec.Parent
	}
	var parts []string
	if len(p.Spec.Hosts) > 0 || !asksNodes(p) {
		parts = append(parts, humanize.Plural(len(p.Spec.Hosts), "host"))
	}
	if subnets := humanize.List(p.Spec.HostSubnets); len(p.Spec.HostSubnets) > 0 {
		those := "the hosts"
		if len(parts) > 0 {
			those = "those"
		}
		parts = append(parts, fmt.Sprintf("%s in %s", those, subnets))
	}
	if selector := SelectorCell(p); selector != "" {
		parts = append(parts, "the nodes with "+selector)
	}
	last := len(parts) - 1
	if last == 0 {
		return parts[0]
	}
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// SelectorCell formats the host selector of a pool in kubectl's notation; empty if there is none.
func SelectorCell(p Pool) string {
	if of := HostsOf(p, nil); of.HostSelector != nil {
		return of.HostSelector.String()
	}
	return ""
}

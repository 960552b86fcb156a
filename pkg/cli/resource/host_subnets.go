package resource

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// HostSubnetsOf returns the host subnets of a pool, without those that cannot be read.
func HostSubnetsOf(p Pool) ipam.Networks {
	networks, _ := store.HostSubnets(p.BCSNetPool) // the error is part of the pool's Problem
	return networks
}

// Serves reports whether a pool is for a host, by one of the IPs that its node has.
func Serves(p Pool, addrs []netip.Addr) bool {
	networks := HostSubnetsOf(p)
	return slices.ContainsFunc(addrs, func(a netip.Addr) bool {
		_, covered := networks.Of(a)
		return covered || HostIndex(p.Spec.Hosts, a) >= 0
	})
}

// NodesInSubnets reads the nodes where one of the pools has host subnets, and says what stays unknown where they
// cannot be read.
func NodesInSubnets(ctx context.Context, s *app.App, all ...Pool) []Node {
	if !slices.ContainsFunc(all, func(p Pool) bool { return len(p.Spec.HostSubnets) > 0 }) {
		return nil
	}
	nodes, err := ListNodes(ctx, s)
	if err != nil {
		s.Say.Warn("nodes cannot be read, so it is unknown which lie in the host subnets: %v", err)
	}
	return nodes
}

// Covered lists the nodes that may draw from a pool by its host subnets alone, each by an IP that lies in one.
func Covered(p Pool, nodes []Node) (hosts []netip.Addr) {
	networks := HostSubnetsOf(p)
	for _, n := range nodes {
		if slices.ContainsFunc(n.Addrs, func(a netip.Addr) bool { return HostIndex(p.Spec.Hosts, a) >= 0 }) {
			continue
		}
		for _, a := range n.Addrs {
			if _, ok := networks.Of(a); ok {
				hosts = append(hosts, a)
				break
			}
		}
	}
	return hosts
}

// HostCell formats how many hosts may draw from a pool. With host subnets the number is that of the pool's status,
// which counts the nodes that lie in them.
func HostCell(p Pool) string {
	switch {
	case len(p.Spec.HostSubnets) == 0:
		return strconv.Itoa(len(p.Spec.Hosts))
	case !Counted(p.BCSNetPool):
		return ""
	default:
		return app.Count(p.Status.Hosts)
	}
}

// ForHosts describes which hosts a pool is for: "2 hosts and those in 10.0.0.0/16".
func ForHosts(p Pool) string {
	text := humanize.Plural(len(p.Spec.Hosts), "host")
	switch subnets := humanize.List(p.Spec.HostSubnets); {
	case len(p.Spec.HostSubnets) == 0:
		return text
	case len(p.Spec.Hosts) == 0:
		return "the hosts in " + subnets
	default:
		return fmt.Sprintf("%s and those in %s", text, subnets)
	}
}

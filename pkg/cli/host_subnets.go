package cli

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

// hostSubnetsOf are the host subnets of a pool; those that cannot be read do not count.
func hostSubnetsOf(p pool) ipam.Networks {
	networks, _ := store.HostSubnets(p.BCSNetPool) // which Problem of the pool tells of
	return networks
}

// serves says whether a pool is for a host, by one of the IPs that its node has.
func serves(p pool, addrs []netip.Addr) bool {
	networks := hostSubnetsOf(p)
	return slices.ContainsFunc(addrs, func(a netip.Addr) bool {
		_, covered := networks.Of(a)
		return covered || hostIndex(p.Spec.Hosts, a) >= 0
	})
}

// nodesInSubnets reads the nodes where one of the pools has host subnets, and says what stays unknown where they
// cannot be read.
func nodesInSubnets(ctx context.Context, s *app.App, all ...pool) []node {
	if !slices.ContainsFunc(all, func(p pool) bool { return len(p.Spec.HostSubnets) > 0 }) {
		return nil
	}
	nodes, err := listNodes(ctx, s)
	if err != nil {
		s.Say.Warn("nodes cannot be read, so it is unknown which lie in the host subnets: %v", err)
	}
	return nodes
}

// covered are the nodes that may draw from a pool by its host subnets alone, each by an IP that lies in one.
func covered(p pool, nodes []node) (hosts []netip.Addr) {
	networks := hostSubnetsOf(p)
	for _, n := range nodes {
		if slices.ContainsFunc(n.addrs, func(a netip.Addr) bool { return hostIndex(p.Spec.Hosts, a) >= 0 }) {
			continue
		}
		for _, a := range n.addrs {
			if _, ok := networks.Of(a); ok {
				hosts = append(hosts, a)
				break
			}
		}
	}
	return hosts
}

// hostCell is how many hosts may draw from a pool. Which nodes lie in its host subnets, its status says.
func hostCell(p pool) string {
	switch {
	case len(p.Spec.HostSubnets) == 0:
		return strconv.Itoa(len(p.Spec.Hosts))
	case !counted(p.BCSNetPool):
		return ""
	default:
		return app.Count(p.Status.Hosts)
	}
}

// forHosts says for whom a pool is: "2 hosts and those in 10.0.0.0/16".
func forHosts(p pool) string {
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

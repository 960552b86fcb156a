package host

import (
	"context"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// hostFacts holds the pools, leases and nodes from which rows are made.
type hostFacts struct {
	pools  []resource.Pool // by name
	active resource.LeaseUsage[netip.Addr]
	nodes  []resource.Node
	// blind: the nodes cannot be read.
	blind bool
	// selected limits the rows to the hosts of these nodes.
	selected bool
}

func (v *hostList) rows(ctx context.Context) ([]hostRow, error) {
	facts := hostFacts{active: resource.LeaseUsage[netip.Addr]{}, selected: v.which.Labels != ""}
	var err error
	if facts.pools, err = resource.AllPools(ctx, v.App); err != nil {
		return nil, err
	}
	leases, err := v.Leases()
	if err != nil {
		return nil, err
	}
	query := resource.LeaseQuery{Status: lease.Active.String()}
	if err := leases.Each(ctx, query.Selector(), func(l lease.Lease) error {
		resource.AddHosts(facts.active, resource.HeldAddrOf(l))
		return nil
	}); err != nil {
		return nil, resource.Explain(v.App, err)
	}
	if facts.nodes, err = resource.ListNodesWith(ctx, v.App, v.which.Labels); err != nil {
		if facts.selected {
			return nil, err
		}
		v.warnBlind(err)
		facts.blind = true
	}
	return facts.rows(), nil
}

func (v *hostList) warnBlind(err error) {
	v.Say.Warn("nodes cannot be read, so NODE and STATE are unknown: %v", err)
}

// rows returns a row for each host, sorted by IP.
func (f hostFacts) rows() []hostRow {
	all := map[netip.Addr]*hostRow{}
	row := func(h netip.Addr) *hostRow {
		if all[h] == nil {
			all[h] = &hostRow{host: h}
		}
		return all[h]
	}
	for _, p := range f.pools {
		for _, h := range resource.ListedHosts(p) {
			if !slices.Contains(row(h).pools, p.Name) {
				row(h).pools = append(row(h).pools, p.Name)
			}
		}
	}
	for h, held := range f.active {
		row(h).active, row(h).pods = held.Addresses, len(held.Pods)
	}
	if !f.blind && len(f.nodes) > 0 { // without any node, the cluster has lost its nodes: no host counts as gone
		joinNodes(all, f.nodes)
	}
	f.joinCovering(all)
	var out []hostRow
	for _, r := range all {
		if r.node != "" || !f.selected {
			out = append(out, *r)
		}
	}
	slices.SortFunc(out, byHost)
	return out
}

func byHost(a, b hostRow) int { return a.host.Compare(b.host) }

// joinNodes adds the nodes to the rows. A node gets a row of its own if none of its addresses has one.
func joinNodes(all map[netip.Addr]*hostRow, nodes []resource.Node) {
	for _, r := range all {
		r.state = resource.HostGone
	}
	for _, n := range nodes {
		known := false
		for _, a := range n.Addrs {
			if r := all[a]; r != nil {
				known = true
				if r.node == "" || n.Ready && r.state != resource.HostReady { // alive while one of them is
					r.node, r.state = n.Name, n.State
				}
			}
		}
		if !known && len(n.Addrs) > 0 {
			all[n.Addrs[0]] = &hostRow{host: n.Addrs[0], node: n.Name, state: n.State}
		}
	}
}

// joinCovering adds to each row the pools that admit the host without listing it.
func (f hostFacts) joinCovering(all map[netip.Addr]*hostRow) {
	nodes := map[string][]netip.Addr{}
	for _, n := range f.nodes {
		nodes[n.Name] = n.Addrs
	}
	for _, p := range f.pools {
		of := resource.HostsOf(p, f.nodes)
		if len(of.HostSubnets)+len(of.Selected) == 0 {
			continue
		}
		for _, r := range all {
			covered := slices.ContainsFunc(append(slices.Clip(nodes[r.node]), r.host), of.Covers)
			if at, found := slices.BinarySearch(r.pools, p.Name); covered && !found {
				r.pools = slices.Insert(r.pools, at, p.Name)
			}
		}
	}
}

package view

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// FreeRuns returns the ranges of free addresses of a pool that was read with its leases, the longest first. What is
// free is decided as the controller decides it.
func (d *Pool) FreeRuns(ctx context.Context, s *app.App) ([]netipx.IPRange, error) {
	x, err := resource.PoolIndex(ctx, s)
	if err != nil {
		return nil, err
	}
	nodes, err := resource.ListNodes(ctx, s)
	if err != nil {
		s.Say.Warn("nodes cannot be read, so an address that a node has itself counts as free: %v", err)
	}
	for _, n := range nodes {
		x.Pools.SetNode(n.Name, n.Known())
	}
	for _, l := range d.Leases {
		x.Feed.Wrote(l)
	}
	runs := slices.Clone(x.Pools.Ranges(d.Name, d.now).Free.Ranges())
	slices.SortStableFunc(runs, func(a, b netipx.IPRange) int {
		return cmp.Or(cmp.Compare(ipaddr.Size(b), ipaddr.Size(a)), a.From().Compare(b.From()))
	})
	return runs, nil
}

// SetAside is a set of addresses that somebody set aside for one reason.
type SetAside struct {
	By, Reason string
	Addrs      *netipx.IPSet
}

// SetAside returns the addresses of a pool that people set aside or that are quarantined, by who and why.
func (d *Pool) SetAside() []SetAside {
	type key struct{ by, reason string }
	addrs := map[key][]netip.Addr{}
	for _, l := range d.Leases {
		if l.State != lease.Reserved || l.IsRetained() {
			continue
		}
		k := key{l.Reservation().By, l.Reservation().Reason}
		if l.IsQuarantined() {
			k = key{l.Conflict.MAC, resource.StatusQuarantined}
		}
		addrs[k] = append(addrs[k], l.Addr)
	}
	var out []SetAside
	for k, all := range addrs {
		out = append(out, SetAside{k.by, k.reason, ipaddr.SetOfAddrs(all...)})
	}
	slices.SortFunc(out, func(a, b SetAside) int {
		return a.Addrs.Ranges()[0].From().Compare(b.Addrs.Ranges()[0].From())
	})
	return out
}

// Share is how many addresses of a pool a namespace or claim has. Quota is how many it may have, where Bounded.
type Share struct {
	Name       string
	Has, Quota int
	Bounded    bool
	State      string
}

// Namespaces returns what the namespaces have of a pool, those with the most first.
func (d *Pool) Namespaces() (out []Share) {
	by := map[string]Share{}
	for name, n := range d.charged {
		by[name] = Share{Name: name, Has: n}
	}
	for _, u := range d.Quotas() {
		by[u.Namespace] = Share{u.Namespace, u.Has, u.Quota, true, QuotaState(u)}
	}
	return most(slices.Collect(maps.Values(by)))
}

// Claims returns the claims that addresses of a pool belong to, those with the most first.
func (d *Pool) Claims() []Share {
	by := map[string]int{}
	for _, l := range d.Leases {
		if l.Claim != "" && l.State != lease.Available {
			by[l.Claim]++
		}
	}
	var out []Share
	for name, n := range by {
		out = append(out, Share{Name: name, Has: n})
	}
	return most(out)
}

func most(all []Share) []Share {
	slices.SortFunc(all, func(a, b Share) int { return cmp.Or(cmp.Compare(b.Has, a.Has), cmp.Compare(a.Name, b.Name)) })
	return all
}

// Map draws up the part of a pool that a prefix holds, or all of it if the prefix is invalid, in blocks of the size
// that shows most.
func (d *Pool) Map(within netip.Prefix) Map {
	p := d.Plan.WithNodes(resource.Known(d.nodes))
	if resource.IsBlock(d.Pool) {
		p.Hosts, p.HostSubnets, p.Selected = d.parent.Hosts, d.parent.HostSubnets, d.parent.Selected
	}
	taken := d.Leases
	if within.IsValid() {
		p = Within(p, within)
		taken = slices.DeleteFunc(slices.Clone(taken), func(l lease.Lease) bool { return !within.Contains(l.Addr) })
	}
	return NewMap(p, taken, BlockBits(p))
}

// Blocks returns the blocks of a pool that is split, by name.
func (d *Pool) Blocks() []resource.Pool {
	return slices.SortedFunc(maps.Values(d.blocks), func(a, b resource.Pool) int { return cmp.Compare(a.Name, b.Name) })
}

// GroupText says what a group takes from its parent.
func GroupText(g ipam.Pool) string { return groupText(g) }

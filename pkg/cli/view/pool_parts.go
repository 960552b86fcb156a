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

// FreeRuns returns the free ranges of a pool that was read with its leases, the longest first. It applies the
// controller's rules for free addresses.
func (d *Pool) FreeRuns(ctx context.Context, s *app.App) ([]netipx.IPRange, error) {
	x, err := resource.IndexBeside(ctx, s, append(d.Blocks(), d.Pool))
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

// SetAside is a set of addresses that the same user set aside for the same reason.
type SetAside struct {
	By, Reason string
	Addrs      *netipx.IPSet
}

// SetAside returns the addresses of a pool that were set aside or are quarantined, by author and reason.
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

// Share counts the addresses of a pool that a namespace or claim has. Quota is its limit if Bounded.
type Share struct {
	Name       string
	Has, Quota int
	Bounded    bool
	State      string
}

// Namespaces returns the use of a pool by namespace, in descending order.
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

// Claims returns the addresses of a pool by claim, in descending order.
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

// Map makes the map of the part of a pool in a prefix, or of the whole pool if the prefix is invalid. It chooses the
// size of the blocks.
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

// Blocks returns the blocks of a split pool, sorted by name.
func (d *Pool) Blocks() []resource.Pool {
	return slices.SortedFunc(maps.Values(d.blocks), func(a, b resource.Pool) int { return cmp.Compare(a.Name, b.Name) })
}

// GroupText says which addresses a group takes from its parent.
func GroupText(g ipam.Pool) string { return groupText(g) }

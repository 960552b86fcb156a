package view

import (
	"context"
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// PoolNamed reads a pool and counts its addresses. With keep, the result also holds the addresses.
func PoolNamed(ctx context.Context, s *app.App, name string, keep bool) (*Pool, error) {
	api, err := resource.NewPools(s)
	if err != nil {
		return nil, err
	}
	p, err := api.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return PoolOf(ctx, s, p, keep)
}

// PoolOf does the same for a pool that was read already.
func PoolOf(ctx context.Context, s *app.App, p resource.Pool, keep bool) (*Pool, error) {
	api, err := resource.NewPools(s)
	if err != nil {
		return nil, err
	}
	side, err := api.Side(ctx, p)
	if err != nil {
		return nil, err
	}
	d := &Pool{
		Pool: p, Plan: side[p.Name], parent: side[p.Spec.Parent], Groups: groupsOf(side, p.Name),
		byHost: map[netip.Addr]*HostUse{}, charged: map[string]int{}, kept: map[string]int{}, keep: keep, now: s.Now(),
	}
	if from := d.settled(); from.Name != "" && from.Valid() {
		d.Outdated = lease.NewOutdated(from.Settings())
	}
	d.nodes = resource.NodesFor(ctx, s, p)
	leases, err := s.Leases()
	if err != nil {
		return nil, err
	}
	if d.Plan.NamespaceSelector != nil {
		if d.labels, err = resource.LabelsOfNamespaces(ctx, s); err != nil {
			return nil, err
		}
	}
	query, of := resource.LeaseQuery{Pool: p.Name}, d.count
	if p.Spec.BlockSize > 0 {
		if err := d.readBlocks(ctx, api); err != nil {
			return nil, err
		}
		query, of = resource.LeaseQuery{}, d.countWithBlocks
	}
	if err := leases.Each(ctx, query.Selector(), of); err != nil {
		return nil, resource.Explain(s, err)
	}
	may := resource.HostsOf(d.Pool, d.nodes)
	if resource.IsBlock(d.Pool) {
		may = d.parent.WithNodes(resource.Known(d.nodes))
	}
	for _, u := range d.byHost {
		u.Listed = may.Draws(u.Host)
	}
	d.Events = eventsOf(ctx, s, "", p.UID)
	return d, nil
}

// Pool describes a pool.
type Pool struct {
	resource.Pool
	// Plan is the pool as it serves beside its parent and groups.
	Plan ipam.Pool
	// parent is the parent of a block or group. A block has its parent's hosts.
	parent ipam.Pool
	Groups []ipam.Pool
	// blocks has the blocks of a split pool by name; split counts them.
	blocks map[string]resource.Pool
	split  block.Counts
	byHost map[netip.Addr]*HostUse
	// labels has the labels of namespaces if the pool selects by them; nil if they are unknown.
	labels map[string]map[string]string
	// charged counts the addresses that count against each namespace's quota.
	charged map[string]int
	// kept counts the kept addresses by claim.
	kept map[string]int
	// nodes are all nodes, if the pool has host subnets or a host selector.
	nodes []resource.Node
	// Outdated counts the leases with other settings; nil if the pool's spec is invalid.
	Outdated *lease.Outdated
	// turnover counts what began and ended lately. Trend is set by Foresee; nil if nothing can be said.
	turnover turnover
	Trend    *Trend
	// active and reserved count the leases, retired those whose address the pool no longer has.
	active, reserved, retired int64
	Events                    []resource.Event
	// Leases has the held addresses of the pool and its blocks, and those in cooldown; only with keep.
	Leases []lease.Lease
	keep   bool
	now    time.Time
}

// HostUse counts the pool's addresses on one host. Listed: the host may draw from the pool.
type HostUse struct {
	Host             netip.Addr
	Active, Reserved int64
	Listed           bool
}

// count counts one address.
func (d *Pool) count(l lease.Lease) error {
	if d.keep && (l.State != lease.Available || resource.CoolingIn(d.Plan, l, d.now)) {
		d.Leases = append(d.Leases, l)
	}
	d.turnover.count(l, d.now)
	if l.State == lease.Available {
		return nil
	}
	for _, ns := range l.ChargedTo() {
		d.charged[ns]++
	}
	if l.IsRetained() {
		d.kept[l.Claim]++
	}
	if d.Outdated != nil {
		d.Outdated.Add(l)
	}
	u := d.byHost[l.Host]
	if u == nil {
		u = &HostUse{Host: l.Host}
		d.byHost[l.Host] = u
	}
	if l.State == lease.Active {
		d.active++
		u.Active++
	} else {
		d.reserved++
		u.Reserved++
	}
	if d.Plan.Lacks(l.Addr) {
		d.retired++
	}
	return nil
}

// Room returns the room of the pool. Addresses in cooldown count as held.
func (d *Pool) Room() resource.Room {
	return resource.RoomOf(d.BCSNetPool, d.Plan, d.active+d.reserved-d.retired+d.Status.Cooling, d.retired)
}

// settled returns the pool with the settings of the leases: for a block its parent.
func (d *Pool) settled() ipam.Pool {
	if resource.IsBlock(d.Pool) {
		return d.parent
	}
	return d.Plan
}

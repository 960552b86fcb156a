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

// PoolNamed reads a pool, and counts its addresses. With keep it has them, too, in memory.
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

// PoolOf counts the addresses of a pool that was read, as PoolNamed does.
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

// Pool gathers what there is to say of a pool.
type Pool struct {
	resource.Pool
	// Plan is the pool as it serves beside its parent and its groups.
	Plan ipam.Pool
	// parent is the one of a block or group; a block has its hosts.
	parent ipam.Pool
	Groups []ipam.Pool
	// blocks are those of a pool that is split, by name; split counts them.
	blocks map[string]resource.Pool
	split  block.Counts
	byHost map[netip.Addr]*HostUse
	// labels are those of the namespaces, where the pool chooses by them; nil where they are not known.
	labels map[string]map[string]string
	// charged counts what counts for each namespace.
	charged map[string]int
	// kept counts the addresses that nobody uses and each claim keeps.
	kept map[string]int
	// nodes are all, where the pool has host subnets or a host selector.
	nodes []resource.Node
	// Outdated counts the leases that were given other settings; nil if the pool says nothing that can be read.
	Outdated *lease.Outdated
	// active and reserved count the leases, retired those of them that the pool no longer lists.
	active, reserved, retired int64
	Events                    []resource.Event
	// Leases are those of the pool and its blocks, where they were asked for, with the free ones that rest.
	Leases []lease.Lease
	keep   bool
	now    time.Time
}

// HostUse counts what one host holds of the pool. Listed: it may draw from the pool.
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

// Room returns the room of the pool. Addresses that cool down are held as far as that goes.
func (d *Pool) Room() resource.Room {
	return resource.RoomOf(d.BCSNetPool, d.Plan, d.active+d.reserved-d.retired+d.Status.Cooling, d.retired)
}

// settled returns the pool that the settings of leases come from: of a block its parent.
func (d *Pool) settled() ipam.Pool {
	if resource.IsBlock(d.Pool) {
		return d.parent
	}
	return d.Plan
}

package pool

import (
	"context"
	"net/netip"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

type poolDescribe struct {
	*app.App
	output printer.Output
	name   string
}

func newDescribe(s *app.App) *cobra.Command {
	v := &poolDescribe{App: s}
	cmd := &cobra.Command{
		Use: "describe POOL", Aliases: []string{"show"}, Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Show a pool: capacity, what is wrong, which host holds how much",
		Long: `Show a pool: its addresses and how many are free, the conditions that are not as
they should be, how many addresses each host holds, what happened lately, and
what to do next. Only what has something to say is shown.`,
		Example: `  bcsnetctl pool describe blue
  bcsnetctl pool describe blue -o yaml`,
		ValidArgsFunction: resource.CompletePoolFirst(s, nil),
	}
	v.output.AddToChange(cmd)
	return cmd
}

func (v *poolDescribe) Complete(args []string) error {
	v.name = args[0]
	return nil
}

func (v *poolDescribe) Validate() error { return v.output.Validate() }

func (v *poolDescribe) Run(ctx context.Context) error {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	p, err := api.Get(ctx, v.name)
	if err != nil {
		return err
	}
	if v.output.Printer != nil && v.output.Names() {
		return v.output.Object(v.Out, p.Stored)
	}
	side, err := api.Side(ctx, p)
	if err != nil {
		return err
	}
	d := &description{
		App: v.App, pool: p, plan: side[p.Name], parent: side[p.Spec.Parent], groups: groupsOf(side, p.Name),
		byHost: map[netip.Addr]*hostUse{}, charged: map[string]int{}, kept: map[string]int{},
	}
	if from := d.settled(); from.Name != "" && from.Valid() {
		d.outdated = lease.NewOutdated(from.Settings())
	}
	leases, err := v.Leases()
	if err != nil {
		return err
	}
	if v.output.Printer != nil {
		return v.print(ctx, api, d, leases)
	}
	d.nodes = resource.NodesFor(ctx, v.App, p)
	if d.plan.NamespaceSelector != nil {
		if d.labels, err = labelsOfNamespaces(ctx, v.App); err != nil {
			return err
		}
	}
	if err := d.readLeases(ctx, api, leases); err != nil {
		return err
	}
	if d.events, err = resource.RecentEvents(ctx, v.App, p.UID); err != nil && !apierrors.IsForbidden(err) {
		v.Say.Warn("events cannot be read: %v", resource.Explain(v.App, err))
	}
	return d.write()
}

// print prints the object, and beside it how many leases are outdated if any is. Who may not list leases gets the
// object alone.
func (v *poolDescribe) print(ctx context.Context, api *resource.Pools, d *description, leases *store.Client) error {
	if err := d.readLeases(ctx, api, leases); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	o := d.pool.Stored
	if d.outdated != nil && d.outdated.Leases > 0 {
		o = o.DeepCopy()
		o.Object["outdated"] = resource.OutdatedObject(d.outdated)
	}
	return v.output.Object(v.Out, o)
}

// settled returns the pool that the settings of leases come from: of a block its parent.
func (d *description) settled() ipam.Pool {
	if resource.IsBlock(d.pool) {
		return d.parent
	}
	return d.plan
}

// readLeases counts the leases of the pool, and of its blocks.
func (d *description) readLeases(ctx context.Context, api *resource.Pools, leases *store.Client) error {
	query, of := resource.LeaseQuery{Pool: d.pool.Name}, d.count
	if d.pool.Spec.BlockSize > 0 {
		if err := d.readBlocks(ctx, api); err != nil {
			return err
		}
		query, of = resource.LeaseQuery{}, d.countWithBlocks
	}
	return resource.Explain(d.App, leases.Each(ctx, query.Selector(), of))
}

// description gathers what describe shows of a pool.
type description struct {
	*app.App
	pool resource.Pool
	// plan is the pool as it serves beside its parent and its groups.
	plan ipam.Pool
	// parent is the one of a block or group; a block has its hosts.
	parent ipam.Pool
	groups []ipam.Pool
	// blocks are those of a pool that is split, by name; split counts them.
	blocks map[string]resource.Pool
	split  ipam.BlockCounts
	byHost map[netip.Addr]*hostUse
	// labels are those of the namespaces, where the pool chooses by them; nil where they are not known.
	labels map[string]map[string]string
	// charged counts what counts for each namespace.
	charged map[string]int
	// kept counts the addresses that nobody uses and each claim keeps.
	kept map[string]int
	// nodes are all, where the pool has host subnets or a host selector.
	nodes []resource.Node
	// outdated counts the leases that were given other settings; nil if the pool says nothing that can be read.
	outdated *lease.Outdated
	// active and reserved count the leases, retired those of them that the pool no longer lists.
	active, reserved, retired int64
	events                    []resource.Event
}

// hostUse counts what one host holds of the pool.
type hostUse struct {
	host             netip.Addr
	active, reserved int64
	listed           bool
}

// count counts one address.
func (d *description) count(l lease.Lease) error {
	if l.State == lease.Available {
		return nil
	}
	for _, ns := range l.ChargedTo() {
		d.charged[ns]++
	}
	if l.IsRetained() {
		d.kept[l.Claim]++
	}
	if d.outdated != nil {
		d.outdated.Add(l)
	}
	u := d.byHost[l.Host]
	if u == nil {
		u = &hostUse{host: l.Host}
		d.byHost[l.Host] = u
	}
	if l.State == lease.Active {
		d.active++
		u.active++
	} else {
		d.reserved++
		u.reserved++
	}
	if d.plan.Lacks(l.Addr) {
		d.retired++
	}
	return nil
}

// room returns the room of the pool. Addresses that cool down are held as far as that goes.
func (d *description) room() resource.Room {
	return resource.RoomOf(d.pool.BCSNetPool, d.plan, d.active+d.reserved-d.retired+d.pool.Status.Cooling, d.retired)
}

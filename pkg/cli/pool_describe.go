package cli

import (
	"context"
	"net/netip"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

type poolDescribe struct {
	*session
	output output
	name   string
}

func newPoolDescribe(s *session) *cobra.Command {
	v := &poolDescribe{session: s}
	cmd := &cobra.Command{
		Use: "describe POOL", Aliases: []string{"show"}, Args: takes(1, 1), RunE: runs(v),
		Short: "Show a pool: capacity, what is wrong, which host holds how much",
		Long: `Show a pool: its addresses and how many are free, the conditions that are not as
they should be, how many addresses each host holds, what happened lately, and
what to do next. Only what has something to say is shown.`,
		Example: `  bcsnetctl pool describe blue
  bcsnetctl pool describe blue -o yaml`,
		ValidArgsFunction: s.completePoolFirst(nil),
	}
	v.output.addToChange(cmd)
	return cmd
}

func (v *poolDescribe) Complete(args []string) error {
	v.name = args[0]
	return nil
}

func (v *poolDescribe) Validate() error { return v.output.validate() }

func (v *poolDescribe) Run(ctx context.Context) error {
	api, err := v.pools()
	if err != nil {
		return err
	}
	p, err := api.get(ctx, v.name)
	if err != nil {
		return err
	}
	if v.output.printer != nil {
		return v.output.object(v.Out, p.stored)
	}
	d := &description{session: v.session, pool: p, plan: store.Pool(p.BCSNetPool), byHost: map[netip.Addr]*hostUse{}, charged: map[string]int{}, kept: map[string]int{}}
	d.covered = covered(p, v.nodesInSubnets(ctx, p))
	leases, err := v.leases()
	if err != nil {
		return err
	}
	query := leaseQuery{pool: v.name}
	if err := leases.Each(ctx, query.selector(), d.take); err != nil {
		return v.explain(err)
	}
	if d.events, err = v.recentEvents(ctx, p.UID); err != nil && !apierrors.IsForbidden(err) {
		v.say.warn("events cannot be read: %v", v.explain(err))
	}
	return d.write()
}

// description is what is known of a pool.
type description struct {
	*session
	pool   pool
	plan   ipam.Pool
	byHost map[netip.Addr]*hostUse
	// charged counts what counts for each namespace.
	charged map[string]int
	// kept counts the addresses that nobody uses and each claim keeps.
	kept map[string]int
	// covered are the nodes in the host subnets.
	covered []netip.Addr
	// active and reserved count the leases, retired those of them that the pool no longer lists.
	active, reserved, retired int64
	events                    []event
}

// hostUse is what one host holds of the pool.
type hostUse struct {
	host             netip.Addr
	active, reserved int64
	listed           bool
}

// take counts one address.
func (d *description) take(l ipam.Lease) error {
	if l.State == ipam.Available {
		return nil
	}
	for _, ns := range l.ChargedTo() {
		d.charged[ns]++
	}
	if l.IsRetained() {
		d.kept[l.Claim]++
	}
	u := d.byHost[l.Host]
	if u == nil {
		u = &hostUse{host: l.Host}
		d.byHost[l.Host] = u
	}
	if l.State == ipam.Active {
		d.active++
		u.active++
	} else {
		d.reserved++
		u.reserved++
	}
	if d.plan.Valid() && !d.plan.Plan.Usable.Contains(l.Addr) {
		d.retired++
	}
	return nil
}

// room is the room of the pool. Addresses that cool down are held as far as that goes.
func (d *description) room() room {
	return roomOf(d.pool.BCSNetPool, d.plan, d.active+d.reserved-d.retired+d.pool.Status.Cooling, d.retired)
}

package pool

import (
	"context"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type poolRemoveHost struct{ hostChange }

func newRemoveHost(s *app.App) *cobra.Command {
	v := &poolRemoveHost{hostChange{App: s}}
	cmd := &cobra.Command{
		Use: "remove-host POOL [HOST...]", Args: app.Takes(1, 0), RunE: app.Runs(v),
		Short: "No longer let hosts draw from a pool",
		Long: `No longer let hosts draw from a pool. Addresses that pods on the host have stay
as they are; when the machine is gone for good, bcsnetctl release-host frees
them. A host in a host subnet of the pool cannot be taken out alone.

` + resource.HostArgsHelp,
		Example: `  bcsnetctl pool remove-host blue 10.0.0.13
  bcsnetctl pool remove-host blue 10.0.0.13 10.0.0.14 --dry-run=client
  bcsnetctl pool remove-host blue --selector rack=7`,
		ValidArgsFunction: resource.CompletePoolFirst(s, func(p resource.Pool) []string { return p.Spec.Hosts }),
	}
	v.addTo(cmd)
	return cmd
}

func (v *poolRemoveHost) Run(ctx context.Context) error {
	api, err := resource.NewPools(v.hostChange.App)
	if err != nil {
		return err
	}
	nodes, err := v.from.Matched(ctx, v.App)
	if err != nil {
		return err
	}
	var gone []netip.Addr
	var others []string
	left := 0
	edited, err := api.Edit(ctx, v.name, func(p resource.Pool) (map[string]any, error) {
		if err := v.removable(p, nodes); err != nil {
			return nil, err
		}
		gone, others = listedOf(p.Spec.Hosts, v.from.Hosts, nodes)
		if len(gone) == 0 {
			return nil, nil
		}
		list := slices.Clone(p.Spec.Hosts)
		for _, h := range gone {
			// the schema lets a host be listed twice
			for i := resource.HostIndex(list, h); i >= 0; i = resource.HostIndex(list, h) {
				list = slices.Delete(list, i, i+1)
			}
		}
		left = len(list) + len(p.Spec.HostSubnets)
		return map[string]any{"hosts": resource.Values(list)}, nil
	})
	if err != nil {
		return err
	}
	v.report(ctx, gone, others, left)
	return v.output.Object(v.Out, edited.Stored)
}

// removable refuses hosts that the pool does not list, and those that could draw all the same.
func (v *poolRemoveHost) removable(p resource.Pool, nodes []resource.Node) error {
	networks := resource.HostSubnetsOf(p)
	addrs := slices.Clone(v.from.Hosts)
	for _, n := range nodes {
		addrs = append(addrs, n.Internal...)
	}
	for _, h := range addrs {
		if n, ok := networks.Of(h); ok {
			return app.Refuse(app.ReasonHostInSubnet,
				"host %s lies in the host subnet %s of pool %s: it may draw whether or not the pool lists it", h, n, v.name).
				WithHint("change hostSubnets: bcsnetctl pool edit %s", v.name)
		}
	}
	for _, h := range v.from.Hosts {
		if resource.HostIndex(p.Spec.Hosts, h) < 0 {
			return v.absent(p, h)
		}
	}
	return nil
}

// listedOf returns the hosts to take out of a list: those named, and of nodes the IPs that the list has. The
// nodes without one are named.
func listedOf(list []string, hosts []netip.Addr, nodes []resource.Node) (gone []netip.Addr, others []string) {
	gone = slices.Clone(hosts)
	for _, n := range nodes {
		listed := false
		for _, a := range n.Internal {
			if resource.HostIndex(list, a) < 0 {
				continue
			}
			listed = true
			if !slices.Contains(gone, a) {
				gone = append(gone, a)
			}
		}
		if !listed {
			others = append(others, n.Name)
		}
	}
	return gone, others
}

// report prints what was done, and what the hosts leave behind.
func (v *poolRemoveHost) report(ctx context.Context, gone []netip.Addr, others []string, left int) {
	if len(others) > 0 {
		v.Say.Note("not in pool %s: %s %s", v.name, humanize.OneOr(len(others), "node", "nodes"), humanize.List(others))
	}
	if len(gone) == 0 {
		v.Say.Note("nothing to take out of pool %s", v.name)
		return
	}
	var names []string
	for _, h := range gone {
		names = append(names, h.String())
	}
	v.Say.Done("%s taken out of pool %s", app.Those("host", names), v.name)
	if left == 0 {
		v.Say.Warn("no host may draw from pool %s any more", v.name)
	}
	v.warnHeld(ctx, gone)
}

func (v *poolRemoveHost) absent(p resource.Pool, h netip.Addr) error {
	f := app.Refuse(ipam.ReasonHostNotInPool, "host %s is not in pool %s", h, v.name)
	if near := app.Nearest(h.String(), p.Spec.Hosts); near != "" {
		return f.WithHint("did you mean %s? Its hosts: bcsnetctl pool describe %s", near, v.name)
	}
	return f.WithHint("see its hosts: bcsnetctl pool describe %s", v.name)
}

// warnHeld warns of what the hosts still hold of the pool.
func (v *poolRemoveHost) warnHeld(ctx context.Context, gone []netip.Addr) {
	for _, h := range gone {
		held, err := resource.HeldLeases(ctx, v.hostChange.App,
			resource.LeaseQuery{Pool: v.name, Host: h.String(), Status: lease.Active.String()},
			func(lease.Lease) bool { return true })
		switch {
		case err != nil:
			v.Say.Warn("it is unknown whether the host still has addresses of the pool: %v", err)
			return
		case len(held) > 0:
			v.Say.Warn("host %s still has %s of pool %s in use; %s", h, humanize.Plural(len(held), "address"), v.name,
				humanize.OneOr(len(held), "it stays until its pod ends", "they stay until their pods end"))
			v.Hint("when the machine is gone for good: bcsnetctl release-host %s", h)
		}
	}
}

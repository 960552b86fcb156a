package pool

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/internal/suggest"
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
them. A single host of a host subnet of the pool, or whose node its host
selector matches, cannot be taken out.

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
	pools, err := api.List(ctx)
	if err != nil {
		return err
	}
	known := resource.NodesFor(ctx, v.App, pools...)
	var gone []netip.Addr
	var others []string
	left := 0
	edited, err := api.Edit(ctx, v.name, func(p resource.Pool) (map[string]any, error) {
		if err := resource.CheckOwnHosts(p, "remove-host"); err != nil {
			return nil, err
		}
		if err := v.removable(p, nodes, known); err != nil {
			return nil, err
		}
		gone, others = listedOf(p.Spec.Hosts, v.from.Hosts, nodes)
		if len(gone) == 0 {
			return nil, nil
		}
		list := slices.Clone(p.Spec.Hosts)
		for _, h := range gone {
			// the schema allows duplicates
			for i := resource.HostIndex(list, h); i >= 0; i = resource.HostIndex(list, h) {
				list = slices.Delete(list, i, i+1)
			}
		}
		left = len(list) + len(p.Spec.HostSubnets)
		if p.Spec.HostSelector != nil {
			left++ // whose nodes come and go
		}
		return map[string]any{"hosts": resource.Values(list)}, nil
	})
	if err != nil {
		return err
	}
	v.report(gone, others, left, edited.Spec.Parent)
	if len(gone) > 0 {
		lossesOf(pools, replaced(pools, edited), known).warn(v.App)
		v.warnHeld(ctx, pools, gone)
	}
	return v.output.Object(v.Out, edited.Stored)
}

// removable refuses hosts that the pool does not list, and hosts that its selector or host subnets would still admit.
func (v *poolRemoveHost) removable(p resource.Pool, nodes, all []resource.Node) error {
	of := resource.HostsOf(p, all)
	addrs := slices.Clone(v.from.Hosts)
	for _, n := range nodes {
		addrs = append(addrs, n.Internal...)
	}
	for _, h := range addrs {
		if of.Selects(h) {
			return app.Refuse(app.ReasonHostSelected,
				"the node of host %s matches the host selector %s of pool %s: it may draw whether or not the pool "+
					"lists it", h,
				of.HostSelector, v.name).
				WithHint("change the labels of the node, or hostSelector: bcsnetctl pool edit %s", v.name)
		}
		if n, ok := of.HostSubnets.Of(h); ok {
			return app.Refuse(app.ReasonHostInSubnet,
				"host %s lies in the host subnet %s of pool %s: it may draw whether or not the pool lists it", h, n,
				v.name).
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

// listedOf returns the hosts to remove from a list: the named ones, and the listed IPs of nodes. others names the nodes
// without a listed IP.
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

func (v *poolRemoveHost) report(gone []netip.Addr, others []string, left int, parent string) {
	if len(others) > 0 {
		v.Say.Note("not in pool %s: %s %s", v.name, humanize.OneOr(len(others), "node", "nodes"), humanize.List(others))
	}
	if len(gone) == 0 {
		v.Say.Note("nothing to take out of pool %s", v.name)
		return
	}
	names := app.Map(gone, netip.Addr.String)
	v.Say.Done("%s taken out of pool %s", app.Those("host", names), v.name)
	switch {
	case left == 0 && parent != "":
		v.Say.Warn("pool %s no longer has its own hosts: the hosts of its parent, pool %s, may draw from it", v.name,
			parent)
	case left == 0:
		v.Say.Warn("no host may draw from pool %s", v.name)
	}
}

func (v *poolRemoveHost) absent(p resource.Pool, h netip.Addr) error {
	f := app.Refuse(ipam.ReasonHostNotInPool, "host %s is not in pool %s", h, v.name)
	if near := suggest.Nearest(h.String(), p.Spec.Hosts); near != "" {
		return f.WithHint("did you mean %s? Its hosts: bcsnetctl pool describe %s", near, v.name)
	}
	return f.WithHint("see its hosts: bcsnetctl pool describe %s", v.name)
}

// warnHeld warns of the pool's addresses that the hosts still hold. It sends one list request.
func (v *poolRemoveHost) warnHeld(ctx context.Context, all []resource.Pool, gone []netip.Addr) {
	taken := map[netip.Addr]bool{}
	for _, h := range gone {
		taken[h] = true
	}
	way, err := takenOf(ctx, v.hostChange.App, all, v.name,
		func(l lease.Lease) bool { return l.State == lease.Active && taken[l.Host] })
	if err != nil {
		v.Say.Warn("it is unknown whether %s still %s addresses of the pool: %v",
			humanize.OneOr(len(gone), "the host", "the hosts"), humanize.OneOr(len(gone), "has", "have"), err)
		return
	}
	hosts := heldOn(way.InUse)
	if len(hosts) == 0 {
		return
	}
	n := len(way.InUse)
	v.Say.Warn("%s still %s %s of pool %s in use: %s; %s", app.Those("host", hosts),
		humanize.OneOr(len(hosts), "has", "have"), humanize.Plural(n, "address"), v.name, way.Holders(),
		humanize.OneOr(n, "it stays until its pod ends", "they stay until their pods end"))
	v.Hint("when the %s gone for good: bcsnetctl release-host %s",
		humanize.OneOr(len(hosts), "machine is", "machines are"),
		strings.Join(hosts[:min(len(hosts), humanize.MaxNamed)], " "))
}

// heldOn names the hosts of leases, sorted and without duplicates.
func heldOn(held []lease.Lease) (names []string) {
	var hosts []netip.Addr
	for _, l := range held {
		if !slices.Contains(hosts, l.Host) {
			hosts = append(hosts, l.Host)
		}
	}
	resource.SortAddrs(hosts)
	for _, h := range hosts {
		names = append(names, h.String())
	}
	return names
}

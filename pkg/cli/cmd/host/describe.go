package host

import (
	"context"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type hostDescribe struct {
	*app.App
	output printer.Output
	word   string
	host   netip.Addr // invalid for the name of a node
}

func newHostDescribe(s *app.App) *cobra.Command {
	v := &hostDescribe{App: s}
	cmd := &cobra.Command{
		Use: "describe HOST|NODE", Aliases: []string{"show"}, Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Show a host: its node, its pools, its leases, what is wrong",
		Long: `Show a host, by its IP or by the name of its node: whether the node is ready,
which pools it may draw from and what they have free, the addresses in use on
it, what is wrong, and what to do next.`,
		Example: `  bcsnetctl host describe 10.0.0.11
  bcsnetctl host describe node-1 -o yaml`,
		ValidArgsFunction: completeOneHost(s),
	}
	v.output.AddToView(cmd)
	return cmd
}

// completeOneHost offers the hosts of pools and the names of nodes for the first argument, and nothing after it.
func completeOneHost(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		hosts, _ := resource.CompleteHosts(s)(cmd, args, typed)
		nodes, directive := resource.CompleteNodes(s)(cmd, args, typed)
		return append(hosts, nodes...), directive
	}
}

func (v *hostDescribe) Complete(args []string) error {
	v.word = args[0]
	return nil
}

func (v *hostDescribe) Validate() error {
	if !resource.MayBeNode(v.word) {
		hosts, err := resource.ParseHosts([]string{v.word})
		if err != nil {
			return err
		}
		v.host = hosts[0]
	}
	return v.output.Validate()
}

// hostView gathers what host describe shows of a host.
type hostView struct {
	host netip.Addr
	// addrs are all IPs of the node, or host alone.
	addrs []netip.Addr
	node  *resource.Node
	// blind: the nodes cannot be read.
	blind bool
	pools []resource.Pool
	held  []lease.Lease
}

func (v *hostDescribe) Run(ctx context.Context) error {
	h, err := v.find(ctx)
	if err != nil {
		return err
	}
	if err := v.fill(ctx, h); err != nil {
		return err
	}
	if h.node == nil && !h.blind && len(h.held) == 0 && h.listedBy() == "" {
		where := "in no pool"
		if len(h.pools) > 0 {
			where = "in no pool but by the host subnets of " + h.pools[0].Name
		}
		return app.Refuse(app.ReasonHostNotFound, "host %s is no node, %s, and holds no address", h.host, where).
			WithHint("see all hosts: bcsnetctl host list")
	}
	if v.output.Printer != nil {
		return v.output.Object(v.Out, h.object())
	}
	return v.write(h)
}

// find finds the node of a host, or the host of a node.
func (v *hostDescribe) find(ctx context.Context) (*hostView, error) {
	if !v.host.IsValid() {
		n, err := resource.GetNode(ctx, v.App, v.word)
		switch {
		case err != nil:
			return nil, err
		case len(n.Addrs) == 0:
			return nil, app.Refuse(app.ReasonNodeNotFound, "node %s has no IP", n.Name).
				WithHint("see it: kubectl get node %s -o wide", n.Name)
		}
		return &hostView{host: n.Addrs[0], addrs: n.Addrs, node: &n}, nil
	}
	h := &hostView{host: v.host, addrs: []netip.Addr{v.host}}
	nodes, err := resource.ListNodes(ctx, v.App)
	if err != nil {
		h.blind = true
		v.Say.Warn("nodes cannot be read, so it is unknown whether the host is one: %v", err)
	}
	if len(nodes) == 0 {
		h.blind = true // no node at all says nothing of this host
	}
	for _, n := range nodes {
		if slices.Contains(n.Addrs, v.host) {
			h.node, h.addrs = &n, n.Addrs
		}
	}
	return h, nil
}

// fill reads the pools of the host, and what it holds.
func (v *hostDescribe) fill(ctx context.Context, h *hostView) error {
	all, err := resource.AllPools(ctx, v.App)
	if err != nil {
		return err
	}
	for _, p := range all {
		if resource.Serves(p, h.addrs) {
			h.pools = append(h.pools, p)
		}
	}
	for _, a := range h.addrs {
		query := resource.LeaseQuery{Host: a.String(), Status: lease.Active.String()}
		held, err := resource.HeldLeases(ctx, v.App, query, func(lease.Lease) bool { return true })
		if err != nil {
			return err
		}
		h.held = append(h.held, held...)
	}
	return nil
}

// listedBy names the first pool that lists the host itself, not in a host subnet; empty where none does.
func (h *hostView) listedBy() string {
	for _, p := range h.pools {
		if slices.ContainsFunc(h.addrs, func(a netip.Addr) bool { return resource.HostIndex(p.Spec.Hosts, a) >= 0 }) {
			return p.Name
		}
	}
	return ""
}

// object returns the host for -o json and the like. It has the fields of host list, too.
func (h *hostView) object() *unstructured.Unstructured {
	var pools []string
	leases := []any{}
	for _, p := range h.pools {
		pools = append(pools, p.Name)
	}
	for _, l := range h.held {
		o := resource.LeaseObject(l)
		o["pool"] = l.Pool
		leases = append(leases, o)
	}
	held := resource.LeaseUsage[netip.Addr]{}
	for _, l := range h.held {
		held.Add(h.host, resource.HeldAddrOf(l))
	}
	row := hostRow{host: h.host, state: h.state(), active: len(h.held), pools: pools}
	if of := held[h.host]; of != nil {
		row.pods = len(of.Pods)
	}
	if h.node != nil {
		row.node = h.node.Name
	}
	o := hostObjects([]hostRow{row}).Items[0]
	o.Object["leases"] = leases
	return &o
}

func (h *hostView) state() string {
	switch {
	case h.node != nil:
		return h.node.State
	case h.blind:
		return ""
	default:
		return resource.HostGone
	}
}

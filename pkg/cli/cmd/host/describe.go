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
		ValidArgsFunction: resource.CompleteOneHost(s),
	}
	v.output.AddToView(cmd)
	return cmd
}

func (v *hostDescribe) Complete(args []string) error {
	v.word = args[0]
	return nil
}

func (v *hostDescribe) Validate() error {
	if err := resource.CheckHost(v.word); err != nil {
		return err
	}
	return v.output.Validate()
}

// hostView gathers what host describe shows of a host.
type hostView struct {
	*resource.FoundHost
	pools []resource.Pool
	held  []lease.Lease
	// parents are those of the blocks, by their names: who draws from a block is said of its parent.
	parents map[string]string
}

func (v *hostDescribe) Run(ctx context.Context) error {
	found, err := resource.FindHost(ctx, v.App, v.word)
	if err != nil {
		return err
	}
	h := &hostView{FoundHost: found}
	if err := v.fill(ctx, h); err != nil {
		return err
	}
	if h.Node == nil && !h.Blind && len(h.held) == 0 && h.listedBy() == "" {
		where := "in no pool"
		if len(h.pools) > 0 {
			where = "in no pool but by the host subnets of " + h.pools[0].Name
		}
		return app.Refuse(app.ReasonHostNotFound, "host %s is no node, %s, and holds no address", h.Host, where).
			WithHint("see all hosts: bcsnetctl host list")
	}
	if v.output.Printer != nil {
		return v.output.Object(v.Out, h.object())
	}
	return v.write(h)
}

// fill reads the pools of the host, and what it holds.
func (v *hostDescribe) fill(ctx context.Context, h *hostView) error {
	all, err := resource.AllPools(ctx, v.App)
	if err != nil {
		return err
	}
	h.parents = map[string]string{}
	for parent, blocks := range resource.BlocksOf(all) {
		for _, b := range blocks {
			h.parents[b.Name] = parent
		}
	}
	for _, p := range all {
		if resource.Serves(p, h.Addrs, h.Nodes) {
			h.pools = append(h.pools, p)
		}
	}
	for _, a := range h.Addrs {
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
		if slices.ContainsFunc(h.Addrs, func(a netip.Addr) bool { return slices.Contains(resource.ListedHosts(p), a) }) {
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
		held.Add(h.Host, resource.HeldAddrOf(l))
	}
	row := hostRow{host: h.Host, state: h.state(), active: len(h.held), pools: pools}
	if of := held[h.Host]; of != nil {
		row.pods = len(of.Pods)
	}
	if h.Node != nil {
		row.node = h.Node.Name
	}
	o := hostObjects([]hostRow{row}).Items[0]
	o.Object["leases"] = leases
	return &o
}

func (h *hostView) state() string {
	switch {
	case h.Node != nil:
		return h.Node.State
	case h.Blind:
		return ""
	default:
		return resource.HostGone
	}
}

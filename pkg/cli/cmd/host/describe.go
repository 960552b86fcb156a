package host

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type hostDescribe struct {
	*app.App
	output printer.Output
	word   string
	link   view.PageLink
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
	v.link.AddTo(cmd)
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
	if err := v.output.Validate(); err != nil {
		return err
	}
	return v.link.Validate(v.output.Printer != nil)
}

func (v *hostDescribe) Run(ctx context.Context) error {
	h, err := view.HostNamed(ctx, v.App, v.word)
	if err != nil {
		return err
	}
	if v.output.Printer != nil {
		return v.output.Object(v.Out, oneObject(h))
	}
	return v.write(h)
}

func (v *hostDescribe) write(h *view.Host) error {
	var b bytes.Buffer
	v.link.With(h.Facts(v.App), "host", h.Host.String()).Write(&b, v.App, 6)
	if err := v.poolsSection(&b, h); err != nil {
		return err
	}
	if err := printer.Indented(&b, "Leases", printer.Table[lease.Lease]{Headers: true,
		Columns: slices.DeleteFunc(resource.LeaseColumns(v.App, false),
			func(c printer.Column[lease.Lease]) bool { return c.Wide || c.Name == "HOST" })}, h.Held); err != nil {
		return err
	}
	problems, next := h.Findings()
	for i := range problems {
		problems[i] = "  " + problems[i]
	}
	printer.Section(&b, "Problems", problems)
	next.Write(&b, v.App)
	_, err := v.Out.Write(b.Bytes())
	return err
}

// poolsSection lists the pools that the host may draw from.
func (v *hostDescribe) poolsSection(b *bytes.Buffer, h *view.Host) error {
	held := h.HeldOf()
	return printer.Indented(b, "Pools", printer.Table[resource.Pool]{Headers: true,
		Columns: []printer.Column[resource.Pool]{
			{Name: "POOL", Cell: func(p resource.Pool) string { return p.Name }},
			{Name: "CIDR", Cell: func(p resource.Pool) string { return resource.CidrOf(p.BCSNetPool) }},
			{Name: "HELD", Cell: func(p resource.Pool) string { return fmt.Sprint(held[p.Name]) }},
			{Name: "FREE", Cell: func(p resource.Pool) string {
				if !resource.Counted(p.BCSNetPool) {
					return ""
				}
				return app.Count(p.Status.Available)
			}},
			{Name: "STATE", Cell: func(p resource.Pool) string {
				word, _ := resource.PoolState(v.App, p.BCSNetPool)
				return v.Terminal.Paint(resource.PoolStateColor(v.App, p.BCSNetPool), word)
			}},
		}}, h.Pools)
}

// oneObject returns the host for -o json and similar formats, with all fields of host list.
func oneObject(h *view.Host) *unstructured.Unstructured {
	var pools []string
	leases := []any{}
	for _, p := range h.Pools {
		pools = append(pools, p.Name)
	}
	for _, l := range h.Held {
		o := resource.LeaseObject(l)
		o["pool"] = l.Pool
		leases = append(leases, o)
	}
	held := resource.LeaseUsage[netip.Addr]{}
	for _, l := range h.Held {
		held.Add(h.Host, resource.HeldAddrOf(l))
	}
	row := hostRow{host: h.Host, state: h.State(), active: len(h.Held), pools: pools}
	if of := held[h.Host]; of != nil {
		row.pods = len(of.Pods)
	}
	if h.Node != nil {
		row.node = h.Node.Name
	}
	o := printer.NewView(hostKind, hostFields(row))
	o.Object["leases"] = leases
	return o
}

package address

import (
	"bytes"
	"context"
	"net/netip"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type ipDescribe struct {
	*app.App
	output printer.Output
	args   []string
	addrs  []netip.Addr
	link   view.PageLink
}

func newDescribe(s *app.App, group string) *cobra.Command {
	v := &ipDescribe{App: s}
	cmd := &cobra.Command{
		Use: "describe ADDRESS...", Aliases: []string{"show"}, Args: app.Takes(1, 0), RunE: app.Runs(v),
		Short: "Show who has an address, since when, and how to get it back",
		Long: `Show all that is known of addresses: who holds one, since when and on which
host, what became of the pod, who held it before, and the command that frees it.
For a free address it shows which pool allocates it, or why nobody gets it.

- reads addresses from standard input, one a line.`,
		Example: `  bcsnetctl ip describe 10.0.0.20
  bcsnetctl ip describe 10.0.0.20 -o yaml
  bcsnetctl ip describe 10.0.0.20 --link https://pools.example.com`,
		ValidArgsFunction: resource.CompleteAddresses(s, lease.Active, lease.Reserved),
	}
	v.output.AddToChange(cmd)
	v.link.AddTo(cmd)
	return resource.Under(group, cmd)
}

func (v *ipDescribe) Complete(args []string) (err error) {
	v.args, err = resource.ArgsOrLines(v.App, "addresses", args)
	return err
}

func (v *ipDescribe) Validate() (err error) {
	if v.addrs, err = resource.ParseAddresses(v.args); err != nil {
		return err
	}
	if err := v.output.Validate(); err != nil {
		return err
	}
	return v.link.Validate(v.output.Printer != nil)
}

func (v *ipDescribe) Run(ctx context.Context) error {
	if err := resource.FitLengths(ctx, v.App, v.args); err != nil {
		return err
	}
	views, err := view.Addresses(ctx, v.App, v.addrs)
	if err != nil {
		return err
	}
	if v.output.Printer != nil {
		return v.print(views)
	}
	return v.write(views)
}

func (v *ipDescribe) write(views []view.Address) error {
	var b bytes.Buffer
	for i, one := range views {
		if i > 0 {
			b.WriteString("\n")
		}
		v.link.With(one.Facts(v.App), "ip", one.Addr.String()).Write(&b, v.App, 12)
		if err := printer.Indented(&b, "Earlier", printer.Table[view.Past]{Headers: true, Columns: pastColumns()[1:]},
			one.Earlier()); err != nil {
			return err
		}
		one.Next().Write(&b, v.App)
	}
	_, err := v.Out.Write(b.Bytes())
	return err
}

// print prints the objects. It prints a view of an address without an object.
func (v *ipDescribe) print(views []view.Address) error {
	var items []unstructured.Unstructured
	for _, one := range views {
		if one.Stored == nil {
			one.Stored = printer.NewView("Address", map[string]any{
				"metadata": map[string]any{"name": ipaddr.ObjectName(one.Addr)},
				"address":  one.Addr.String(), "state": one.State.String(), "pool": one.Serving.Name,
				"problem": one.Why(),
			})
		}
		items = append(items, *one.Stored)
	}
	if len(items) == 1 {
		return v.output.Object(v.Out, &items[0])
	}
	return v.output.List(v.Out, items)
}

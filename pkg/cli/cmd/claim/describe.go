package claim

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type claimDescribe struct {
	*app.App
	output printer.Output
	in     resource.InNamespace
	arg    string
	link   view.PageLink
}

func newDescribe(s *app.App) *cobra.Command {
	v := &claimDescribe{App: s}
	cmd := &cobra.Command{
		Use: "describe NAME", Aliases: []string{"show"}, Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Show a claim: whose it is, its addresses, when they are released",
		Long: `Show a claim: whose it is, when its addresses are released, which addresses it
has and which pods have them, the conditions that are not as they should be,
recent events, and what to do next. The command reads the addresses themselves,
so that this is right even while the controller is down.`,
		Example: `  bcsnetctl claim describe deploy-web -n shop
  bcsnetctl claim describe shop/deploy-web -o yaml`,
		ValidArgsFunction: app.First(resource.CompleteClaims(s, &v.in)),
	}
	v.output.AddToChange(cmd)
	v.link.AddTo(cmd)
	v.in.AddTo(s, cmd, "the `NAMESPACE` of the claim")
	return cmd
}

func (v *claimDescribe) Complete(args []string) error {
	v.arg = args[0]
	return v.in.Complete(v.App)
}

func (v *claimDescribe) Validate() error {
	if err := v.output.Validate(); err != nil {
		return err
	}
	return v.link.Validate(v.output.Printer != nil)
}

func (v *claimDescribe) Run(ctx context.Context) error {
	key, err := v.in.Key(v.arg)
	if err != nil {
		return err
	}
	if v.output.Printer != nil {
		_, c, err := resource.ClaimNamed(ctx, v.App, &v.in, v.arg)
		if err != nil {
			return err
		}
		return v.output.Object(v.Out, c.Stored)
	}
	d, err := view.ClaimNamed(ctx, v.App, key, false)
	if err != nil {
		return err
	}
	return v.write(d)
}

func (v *claimDescribe) write(d *view.Claim) error {
	var b bytes.Buffer
	v.link.With(d.Facts(v.App), "claim", d.FullName()).Write(&b, v.App, 12)
	printer.Section(&b, "Conditions", resource.ConditionLines(v.App, d.Status.Conditions))
	if err := printer.Indented(&b, "Addresses", printer.Table[lease.Lease]{Headers: true, Columns: columns(v.App)},
		d.Leases); err != nil {
		return err
	}
	printer.Section(&b, "Events", resource.EventLines(v.App, d.Events))
	d.Next().Write(&b, v.App)
	_, err := v.Out.Write(b.Bytes())
	return err
}

func columns(s *app.App) []printer.Column[lease.Lease] {
	return []printer.Column[lease.Lease]{
		{Name: "ADDRESS", Cell: func(l lease.Lease) string { return l.Addr.String() }},
		{Name: "POOL", Cell: func(l lease.Lease) string { return l.Pool }},
		{Name: "STATUS", Cell: resource.StatusText},
		{Name: "POD", Cell: resource.PodText},
		{Name: "HOST", Cell: func(l lease.Lease) string { return resource.AddrText(l.Host) }},
		{Name: "FOR", Cell: func(l lease.Lease) string { return l.PodPrimaryKey }},
		{Name: "UNTIL", Cell: func(l lease.Lease) string { return resource.UntilText(l.ExpiredTime) }},
		{Name: "AGE", Cell: func(l lease.Lease) string { return s.Age(l.Updated) }},
	}
}

package pool

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

type poolDescribe struct {
	*app.App
	output     printer.Output
	prometheus view.Prometheus
	link       view.PageLink
	name       string
}

func newDescribe(s *app.App) *cobra.Command {
	v := &poolDescribe{App: s}
	cmd := &cobra.Command{
		Use: "describe POOL", Aliases: []string{"show"}, Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Show a pool: capacity, what is wrong, which host holds how much",
		Long: `Show a pool: its addresses and how many are free, the conditions that are not as
they should be, how many addresses each host holds, what happened lately, and
what to do next. Only what has something to say is shown. When it is full is a
guess: by the last day in Prometheus, or by when the leases began that exist.`,
		Example: `  bcsnetctl pool describe blue
  bcsnetctl pool describe blue -o yaml
  bcsnetctl pool describe blue --prometheus https://prometheus.example.com`,
		ValidArgsFunction: resource.CompletePoolFirst(s, nil),
	}
	v.output.AddToChange(cmd)
	v.prometheus.AddTo(cmd)
	v.link.AddTo(cmd)
	return cmd
}

func (v *poolDescribe) Complete(args []string) error {
	v.name = args[0]
	return nil
}

func (v *poolDescribe) Validate() error {
	if err := v.prometheus.Validate(); err != nil {
		return err
	}
	if err := v.output.Validate(); err != nil {
		return err
	}
	return v.link.Validate(v.output.Printer != nil)
}

func (v *poolDescribe) Run(ctx context.Context) error {
	p, err := resource.OnePool(ctx, v.App, v.name)
	if err != nil {
		return err
	}
	if v.output.Printer != nil && v.output.Names() {
		return v.output.Object(v.Out, p.Stored)
	}
	d, err := view.PoolOf(ctx, v.App, p, false)
	switch {
	case v.output.Printer != nil && apierrors.IsForbidden(err):
		return v.output.Object(v.Out, p.Stored)
	case err != nil:
		return err
	}
	d.Foresee(ctx, v.App, &v.prometheus)
	if v.output.Printer != nil {
		return v.print(d)
	}
	return v.write(d)
}

// print prints the object, with the trend and the number of outdated leases, if there are any.
func (v *poolDescribe) print(d *view.Pool) error {
	o := d.Stored.DeepCopy()
	if d.Trend != nil {
		o.Object["trend"] = d.Trend.Object()
	}
	if d.Outdated != nil && d.Outdated.Leases > 0 {
		o.Object["outdated"] = resource.OutdatedObject(d.Outdated)
	}
	return v.output.Object(v.Out, o)
}

func (v *poolDescribe) write(d *view.Pool) error {
	var b bytes.Buffer
	v.link.With(d.Facts(v.App), "pool", d.Name).Write(&b, v.App, 12)
	printer.Section(&b, "Conditions", resource.ConditionLines(v.App, d.Status.Conditions))
	hosts, more := d.Hosts()
	if err := printer.Indented(&b, "Hosts", printer.Table[*view.HostUse]{Headers: true,
		Columns: []printer.Column[*view.HostUse]{
			{Name: "HOST", Cell: func(u *view.HostUse) string { return resource.AddrText(u.Host) }},
			{Name: "ACTIVE", Cell: func(u *view.HostUse) string { return app.Count(u.Active) }},
			{Name: "RSVD", Cell: func(u *view.HostUse) string { return app.Count(u.Reserved) }},
			{Name: "IN POOL", Cell: (*view.HostUse).InPool},
		}}, hosts); err != nil {
		return err
	}
	if more > 0 {
		fmt.Fprintf(&b, "  and %s that hold nothing\n", humanize.Plural(more, "more host"))
	}
	if err := quotas(&b, d.Quotas()); err != nil {
		return err
	}
	printer.Section(&b, "Events", resource.EventLines(v.App, d.Events))
	d.Next(v.App).Write(&b, v.App)
	_, err := v.Out.Write(b.Bytes())
	return err
}

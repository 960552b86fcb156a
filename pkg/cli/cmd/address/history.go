package address

import (
	"context"
	"net/netip"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type ipHistory struct {
	*app.App
	output printer.Output
	args   []string
	addrs  []netip.Addr
}

func newHistory(s *app.App, group string) *cobra.Command {
	v := &ipHistory{App: s}
	cmd := &cobra.Command{
		Use: "history ADDRESS...", Args: app.Takes(1, 0), RunE: app.Runs(v),
		Short: "Show who held addresses before, and who changed them by hand",
		Long: `Show who holds addresses and who held them before, newest first. WHAT ended the
time of a row: gave up, or what a user did, who is named as BY: release,
release-host, reserve, unreserve; or collect, when the controller took the
address back because the pod had gone. An address remembers its last 3 rows.

- reads addresses from standard input, one a line.`,
		Example: `  bcsnetctl ip history 10.0.0.20
  bcsnetctl ip history 10.0.0.20 10.0.0.21 -o json`,
		ValidArgsFunction: resource.CompleteAddresses(s, lease.Active, lease.Reserved),
	}
	v.output.AddToViews(cmd)
	v.output.AddSort(cmd, ".since")
	return resource.Under(group, cmd)
}

func (v *ipHistory) Complete(args []string) (err error) {
	v.args, err = resource.ArgsOrLines(v.App, "addresses", args)
	return err
}

func (v *ipHistory) Validate() (err error) {
	if v.addrs, err = resource.ParseAddresses(v.args); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *ipHistory) Run(ctx context.Context) error {
	if err := resource.FitLengths(ctx, v.App, v.args); err != nil {
		return err
	}
	leases, err := v.Leases()
	if err != nil {
		return err
	}
	all, err := resource.ReadAddresses(ctx, v.App, leases, v.addrs)
	if err != nil {
		return err
	}
	var rows []view.Past
	for _, l := range all {
		of := view.PastOf(l)
		if rows = append(rows, of...); len(of) == 0 {
			v.Say.Note("%s has no history: nobody has held it in %s", l.Addr, v.Where())
		}
	}
	if err := printer.Sorted(&v.output.Sort, rows,
		func(r view.Past) (printer.SortKey, error) { return v.output.Sort.Key(pastObject(r)) }); err != nil {
		return err
	}
	if v.output.Printer != nil {
		return v.output.Object(v.Out, pastObjects(rows))
	}
	return printer.NewTable(&v.output, pastColumns()).Write(v.Out, rows)
}

func pastColumns() []printer.Column[view.Past] {
	return []printer.Column[view.Past]{
		{Name: "ADDRESS", Cell: func(r view.Past) string { return r.Addr.String() }},
		{Name: "SINCE", Cell: func(r view.Past) string { return resource.TimeText(r.Since) }},
		{Name: "UNTIL", Cell: func(r view.Past) string {
			if r.Current {
				return "now"
			}
			return resource.TimeText(r.Until)
		}},
		{Name: "HOLDER", Cell: func(r view.Past) string { return r.Holder }},
		{Name: "HOST", Cell: func(r view.Past) string { return resource.AddrText(r.Host) }},
		{Name: "WHAT", Cell: func(r view.Past) string { return r.Verb }},
		{Name: "BY", Cell: func(r view.Past) string { return r.By }},
		{Name: "REASON", Cell: func(r view.Past) string { return r.Reason }},
	}
}

// pastObjects returns the list for -o json and the like. There is no such kind in the cluster: it is a view.
func pastObjects(rows []view.Past) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": app.ProgramName + "/v1", "kind": "AddressHistoryList",
	}}
	for _, r := range rows {
		l.Items = append(l.Items, unstructured.Unstructured{Object: pastObject(r)})
	}
	return l
}

func pastObject(r view.Past) map[string]any {
	return map[string]any{
		"apiVersion": app.ProgramName + "/v1", "kind": "AddressHistory",
		"address": r.Addr.String(), "current": r.Current, "since": resource.TimeText(r.Since),
		"until":  resource.TimeText(r.Until),
		"holder": r.Holder, "host": resource.AddrText(r.Host), "what": r.Verb, "by": r.By, "reason": r.Reason,
	}
}

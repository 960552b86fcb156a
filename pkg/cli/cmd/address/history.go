package address

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
	host   string
	query  view.HistoryQuery
}

// mostRows is the default maximum of rows of the history.
const mostRows = 1000

func newHistory(s *app.App, group string) *cobra.Command {
	v := &ipHistory{App: s}
	cmd := &cobra.Command{
		Use: "history [ADDRESS...]", Args: cobra.ArbitraryArgs, RunE: app.Runs(v),
		Short: "Show who held addresses, by address, host, namespace, pod or pool",
		Long: `Show who holds addresses and who held them before, newest first: of addresses,
or of all that a host, a namespace, a pod or a pool had at a time. WHAT ended
the time of a row: gave up, moved to another container of the pod, or what a
user did, who is named as BY: release, release-host, reserve, unreserve; or
collect, when the controller took the address back because the pod had gone.

The controller keeps this for 30 days, unless its --history-retention says
otherwise. An address itself remembers its last 3 rows, which are shown
whatever the time.

- reads addresses from standard input, one a line.`,
		Example: `  bcsnetctl ip history 10.0.0.20
  bcsnetctl ip history --host 10.0.0.11 --since 7d
  bcsnetctl ip history --namespace shop --since 2026-05-04T00:00:00Z --until 2026-05-05T00:00:00Z
  bcsnetctl ip history --pod shop/web-0 -o json`,
		ValidArgsFunction: resource.CompleteAddresses(s, lease.Active, lease.Reserved),
	}
	q := &v.query
	cmd.Flags().StringVar(&v.host, "host", "", "what this `HOST` had: an IP or the name of a node")
	cmd.Flags().StringVarP(&q.Namespace, "namespace", "n", "", "what pods of this `NAMESPACE` had")
	cmd.Flags().StringVar(&q.Pod, "pod", "", "what this `POD` had, as NAMESPACE/POD")
	cmd.Flags().StringVar(&q.Pool, "pool", "", "addresses of this `POOL`")
	cmd.Flags().IntVar(&q.Limit, "limit", mostRows, "at most so many `ROWS`, the newest; 0 for all")
	q.AddTo(cmd, "24h")
	app.CompleteWith(cmd, "host", resource.CompleteHosts(s))
	app.CompleteWith(cmd, "namespace", resource.CompleteNamespaces(s))
	app.CompleteWith(cmd, "pool", resource.CompletePools(s))
	app.Complete(cmd, "pod")
	app.Complete(cmd, "limit", "100", "1000", "0")
	v.output.AddToViews(cmd)
	v.output.AddSort(cmd, ".since")
	return resource.Under(group, cmd)
}

func (v *ipHistory) Complete(args []string) (err error) {
	v.args, err = resource.ArgsOrLines(v.App, "addresses", args)
	return err
}

func (v *ipHistory) Validate() (err error) {
	q := &v.query
	if q.Addrs, err = resource.ParseAddresses(v.args); err != nil {
		return err
	}
	if namespace, pod, both := strings.Cut(q.Pod, "/"); both {
		if q.Namespace != "" && q.Namespace != namespace {
			return app.Usagef("--pod %s is not in --namespace %s", q.Pod, q.Namespace)
		}
		q.Namespace, q.Pod = namespace, pod
	}
	switch {
	case q.Pod != "" && q.Namespace == "":
		return app.Usagef("--pod %s has no namespace", q.Pod).WithHint("write NAMESPACE/POD")
	case len(q.Addrs) == 0 && v.host == "" && !q.Broad():
		return app.Usagef("the history of what? It is of addresses, or of a host, a namespace, a pod or a pool").
			WithHint("bcsnetctl ip history 10.0.0.20, or bcsnetctl ip history --host 10.0.0.11 --since 24h")
	case q.Limit < 0:
		return app.Usagef("--limit %d is negative", q.Limit)
	}
	if v.host != "" {
		if err := resource.CheckHost(v.host); err != nil {
			return err
		}
	}
	if err := q.Period.Validate(v.Now()); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *ipHistory) Run(ctx context.Context) error {
	if v.host != "" {
		hosts, err := view.HostAddrs(ctx, v.App, v.host)
		if err != nil {
			return err
		}
		v.query.Hosts = hosts
	}
	if err := resource.FitLengths(ctx, v.App, v.args); err != nil {
		return err
	}
	leases, err := v.Leases()
	if err != nil {
		return err
	}
	all, err := resource.ReadAddresses(ctx, v.App, leases, v.query.Addrs)
	if err != nil {
		return err
	}
	h, err := view.HistoryOf(ctx, v.App, v.query, all)
	if err != nil {
		return err
	}
	for _, l := range all {
		if !slices.ContainsFunc(h.Rows, func(r view.Past) bool { return r.Addr == l.Addr }) {
			v.Say.Note("%s has no history: nobody has held it in %s", l.Addr, v.Where())
		}
	}
	if len(h.Rows) == 0 && len(all) == 0 {
		v.Say.Note("nobody held an address there at that time in %s", v.Where())
	}
	resource.SayGaps(v.App, h.Gaps)
	for _, note := range h.Notes {
		v.Say.Note("%s", note)
	}
	if err := printer.Sorted(&v.output.Sort, h.Rows,
		func(r view.Past) (printer.SortKey, error) { return v.output.Sort.Key(pastFields(r)) }); err != nil {
		return err
	}
	if v.output.Printer != nil {
		return v.output.Object(v.Out, printer.NewViews("AddressHistory", h.Rows, pastFields))
	}
	return printer.NewTable(&v.output, pastColumns()).Write(v.Out, h.Rows)
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

// pastFields returns the fields of a row for -o json and similar formats.
func pastFields(r view.Past) map[string]any {
	return map[string]any{
		"address": r.Addr.String(), "current": r.Current, "since": resource.TimeText(r.Since),
		"until": resource.TimeText(r.Until), "holder": r.Holder, "pool": r.Pool, "host": resource.AddrText(r.Host),
		"what": r.Verb, "by": r.By, "reason": r.Reason,
	}
}

package host

import (
	"cmp"
	"context"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

type hostList struct {
	*app.App
	output printer.Output
	which  resource.Selectors // of nodes
}

func newHostList(s *app.App) *cobra.Command {
	v := &hostList{App: s}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls", "get"}, Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "List hosts: their nodes, pools and addresses in use",
		Long: `List the hosts of all pools, all nodes, and all hosts that hold addresses. STATE
is the state of the node; gone means that no node has the host's IP. ACTIVE
counts the addresses in use on the host, and PODS the pods that hold them: a pod
may hold several, and machines that are not pods hold some. With -l, the hosts
of the nodes that have the labels. With -o name, only the host IPs, for
bcsnetctl release-host.`,
		Example: `  bcsnetctl host list
  bcsnetctl host list -l rack=7 --sort-by .active
  bcsnetctl host list -o jsonpath='{range .items[?(@.state=="gone")]}{.host}{"\n"}{end}'`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.AddTo(cmd)
	v.output.AddSort(cmd, ".active")
	follow.AddWatch(&v.output, cmd)
	v.which.AddLabels(cmd, "hosts of nodes")
	return cmd
}

func (v *hostList) Validate() error { return cmp.Or(v.which.Validate(), v.output.Validate()) }

// hostRow is a row of host list.
type hostRow struct {
	host   netip.Addr
	node   string
	state  string // empty if the nodes cannot be read
	active int
	pods   int // that hold the active ones
	pools  []string
}

func (v *hostList) Run(ctx context.Context) error {
	if v.output.Watch {
		return v.watch(ctx)
	}
	rows, err := v.rows(ctx)
	if err != nil {
		return err
	}
	if err := printer.Sorted(&v.output.Sort, rows,
		func(r hostRow) (printer.SortKey, error) { return v.output.Sort.Key(hostFields(r)) }); err != nil {
		return err
	}
	switch {
	case v.output.Names():
		for _, r := range rows {
			if err := v.show(v.Out, r); err != nil {
				return err
			}
		}
		return nil
	case v.output.Printer != nil:
		return v.output.Object(v.Out, printer.NewViews(hostKind, rows, hostFields))
	}
	if err := printer.NewTable(&v.output, hostColumns(&v.output)).Write(v.Out, rows); err != nil {
		return err
	}
	v.sumUp(rows)
	return nil
}

// show prints one host if the output is not a table.
func (v *hostList) show(w io.Writer, r hostRow) error {
	if v.output.Names() {
		_, err := io.WriteString(w, r.host.String()+"\n")
		return err
	}
	return v.output.Object(w, printer.NewView(hostKind, hostFields(r)))
}

// goneHosts is the jsonpath that prints one missing host per line.
const goneHosts = `{range .items[?(@.state=="gone")]}{.host}{"\n"}{end}`

func (v *hostList) sumUp(rows []hostRow) {
	if len(rows) == 0 {
		if words := v.which.Words(); len(words) > 0 {
			v.Say.Note("no hosts of nodes with %s in %s", words[0], v.Where())
			return
		}
		v.Say.Note("no hosts in %s: neither nodes nor hosts of pools", v.Where())
		return
	}
	gone, left := 0, 0
	var hosts []string
	for _, r := range rows {
		if r.state == resource.HostGone && r.active > 0 {
			gone++
			left += r.active
			hosts = append(hosts, r.host.String())
		}
	}
	v.Say.Note("%s", humanize.Plural(len(rows), "host"))
	if gone > 0 {
		v.Say.Warn("%s gone with %s in use", humanize.OneOr(gone, "host "+hosts[0]+" is", humanize.Plural(gone, "host")+
			" are"), humanize.Plural(left, "address"))
		release := "bcsnetctl release-host " + strings.Join(hosts, " ")
		if len(hosts) > app.MaxNamed {
			release = "bcsnetctl host list -o jsonpath='" + goneHosts + "' | bcsnetctl release-host -"
		}
		v.Hint("to free what hosts that are off hold: %s", release)
	}
}

func hostColumns(o *printer.Output) []printer.Column[hostRow] {
	return []printer.Column[hostRow]{
		{Name: "HOST", Cell: func(r hostRow) string { return r.host.String() }},
		{Name: "NODE", Cell: func(r hostRow) string { return r.node }},
		{Name: "STATE", Cell: func(r hostRow) string { return r.state }},
		{Name: "ACTIVE", Cell: func(r hostRow) string { return strconv.Itoa(r.active) }},
		{Name: "PODS", Cell: func(r hostRow) string { return strconv.Itoa(r.pods) }},
		{Name: "POOLS", Cell: func(r hostRow) string { return o.Some(r.pools, 3) }},
	}
}

// hostKind is the kind of a host for -o json and similar formats.
const hostKind = "Host"

func hostFields(r hostRow) map[string]any {
	return map[string]any{
		"host": r.host.String(), "node": r.node, "state": r.state, "active": int64(r.active), "pods": int64(r.pods),
		"pools": resource.Values(r.pools),
	}
}

package cli

import (
	"context"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

type ipHistory struct {
	*session
	output output
	args   []string
	addrs  []netip.Addr
}

func newIPHistory(s *session, group string) *cobra.Command {
	v := &ipHistory{session: s}
	cmd := &cobra.Command{
		Use: "history ADDRESS...", Args: takes(1, 0), RunE: runs(v),
		Short: "Show who held addresses before, and who changed them by hand",
		Long: `Show who holds addresses and who held them before, newest first. WHAT ended the
time of a row: gave up, or what a user did, who is named as BY: release,
release-host, reserve, unreserve; or collect, when the controller took the
address back because the pod had gone. An address remembers its last 3 rows.

- reads addresses from standard input, one a line.`,
		Example: `  bcsnetctl ip history 10.0.0.20
  bcsnetctl ip history 10.0.0.20 10.0.0.21 -o json`,
		ValidArgsFunction: s.completeAddresses(ipam.Active, ipam.Reserved),
	}
	v.output.addToViews(cmd)
	v.output.addSort(cmd, ".since")
	return under(group, cmd)
}

func (v *ipHistory) Complete(args []string) (err error) {
	v.args, err = v.orLines("addresses", args)
	return err
}

func (v *ipHistory) Validate() (err error) {
	if v.addrs, err = parseAddresses(v.args); err != nil {
		return err
	}
	return v.output.validate()
}

func (v *ipHistory) Run(ctx context.Context) error {
	leases, err := v.leases()
	if err != nil {
		return err
	}
	all, err := v.read(ctx, leases, v.addrs)
	if err != nil {
		return err
	}
	var rows []pastRow
	for _, l := range all {
		of := pastRows(l)
		if rows = append(rows, of...); len(of) == 0 {
			v.say.note("%s has no history: nobody has held it in %s", l.Addr, v.where())
		}
	}
	if err := sorted(&v.output.sort, rows, func(r pastRow) (sortKey, error) { return v.output.sort.key(r.object()) }); err != nil {
		return err
	}
	if v.output.printer != nil {
		return v.output.object(v.Out, pastObjects(rows))
	}
	return newTable(&v.output, pastColumns()).write(v.Out, rows)
}

// pastRow is one holder of an address, or one thing that was done to it.
type pastRow struct {
	addr netip.Addr
	ipam.Past
	// current: it is so now, and has no end.
	current bool
}

// What became of an address beside the verbs of people.
const (
	whatHolds    = "holds"
	whatReserved = "reserved"
	whatKept     = "keeps"
	whatGaveUp   = "gave up"
)

// pastRows are what is known of an address, newest first.
func pastRows(l ipam.Lease) (rows []pastRow) {
	switch l.State {
	case ipam.Active:
		rows = append(rows, pastRow{l.Addr, ipam.Past{Holder: l.Who(), Host: l.Host, Since: l.Updated, Change: ipam.Change{Verb: whatHolds}}, true})
	case ipam.Reserved:
		change := reservation(l)
		change.Verb = whatReserved
		if l.Claim != "" {
			change = ipam.Change{Verb: whatKept}
		}
		rows = append(rows, pastRow{l.Addr, ipam.Past{Holder: claimHolder(l), Since: l.Updated, Change: change}, true})
	case ipam.Available:
	}
	for _, p := range l.History.Entries() {
		if p.Verb == "" {
			p.Verb = whatGaveUp
		}
		rows = append(rows, pastRow{addr: l.Addr, Past: p})
	}
	return rows
}

func pastColumns() []column[pastRow] {
	return []column[pastRow]{
		{name: "ADDRESS", cell: func(r pastRow) string { return r.addr.String() }},
		{name: "SINCE", cell: func(r pastRow) string { return timeText(r.Since) }},
		{name: "UNTIL", cell: func(r pastRow) string {
			if r.current {
				return "now"
			}
			return timeText(r.Until)
		}},
		{name: "HOLDER", cell: func(r pastRow) string { return printers.EscapeTerminal(r.Holder) }},
		{name: "HOST", cell: func(r pastRow) string { return addrText(r.Host) }},
		{name: "WHAT", cell: func(r pastRow) string { return printers.EscapeTerminal(r.Verb) }},
		{name: "BY", cell: func(r pastRow) string { return printers.EscapeTerminal(r.By) }},
		{name: "REASON", cell: func(r pastRow) string { return printers.EscapeTerminal(r.Reason) }},
	}
}

// timeText is a time as tables show it: UTC, to the second.
func timeText(t time.Time) string { return store.FormatTime(t.Truncate(time.Second)) }

// pastObjects is the list for -o json and the like. There is no such kind in the cluster: it is a view.
func pastObjects(rows []pastRow) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": programName + "/v1", "kind": "AddressHistoryList"}}
	for _, r := range rows {
		l.Items = append(l.Items, unstructured.Unstructured{Object: r.object()})
	}
	return l
}

func (r pastRow) object() map[string]any {
	return map[string]any{
		"apiVersion": programName + "/v1", "kind": "AddressHistory",
		"address": r.addr.String(), "current": r.current, "since": timeText(r.Since), "until": timeText(r.Until),
		"holder": r.Holder, "host": addrText(r.Host), "what": r.Verb, "by": r.By, "reason": r.Reason,
	}
}

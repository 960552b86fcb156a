package address

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// ipFree runs ip free, which lists ranges of free addresses.
type ipFree struct {
	*app.App
	output printer.Output
	// pool and within limit the search; an empty pool means all pools, a nil within all addresses.
	pool   string
	within *netipx.IPSet
	text   string
	run    uint64
}

// run is a range of free addresses.
type run struct {
	netipx.IPRange
	pool string
}

func (r run) size() uint64 { return ipaddr.Size(r.IPRange) }

func newFreeRuns(s *app.App) *cobra.Command {
	v := &ipFree{App: s}
	cmd := &cobra.Command{
		Use: "free [POOL|ADDRESSES]", Args: app.Takes(0, 1), RunE: app.Runs(v),
		Short: "List free addresses, as ranges",
		Long: `List the free addresses as ranges: those of all pools, of one POOL, or those
among ADDRESSES, a range a-b with both ends or a CIDR. What is free is decided
here as the controller decides it, from the objects as they are. Nothing is
changed: to set free addresses aside see bcsnetctl ip reserve, to take addresses
from their holders bcsnetctl ip release.

With --run, only ranges with at least so many addresses in a row.`,
		Example: `  bcsnetctl ip free blue
  bcsnetctl ip free blue --run 10
  bcsnetctl ip free 10.0.0.0/25 -o csv`,
		ValidArgsFunction: resource.CompletePoolFirst(s, nil),
	}
	cmd.Flags().Uint64Var(&v.run, "run", 1, "only ranges of at least `N` addresses in a row")
	app.Complete(cmd, "run")
	v.output.AddToViews(cmd)
	return cmd
}

func (v *ipFree) Complete(args []string) error {
	if len(args) > 0 {
		v.text = args[0]
	}
	return nil
}

func (v *ipFree) Validate() error {
	if v.run == 0 {
		return app.Usagef("--run must be at least 1")
	}
	switch entries, err := resource.ParseEntries([]string{v.text}); {
	case v.text == "":
	case err == nil:
		v.within = ipaddr.SetOf(resource.RangesOf(entries)...)
	case strings.ContainsAny(v.text, ":/~") || len(validation.NameIsDNSSubdomain(v.text, false)) > 0:
		return err
	default:
		v.pool = v.text
	}
	return v.output.Validate()
}

// Run lists the runs.
func (v *ipFree) Run(ctx context.Context) error {
	rows, err := v.rows(ctx)
	if err != nil {
		return err
	}
	shown := make([]run, 0, len(rows))
	total, longest := uint64(0), uint64(0)
	for _, r := range rows {
		if longest = max(longest, r.size()); r.size() >= v.run {
			shown, total = append(shown, r), ipaddr.AddSaturated(total, r.size())
		}
	}
	if v.output.Printer != nil {
		return v.output.Object(v.Out, printer.NewViews("FreeRange", shown, runFields))
	}
	if err := printer.NewTable(&v.output, runColumns()).Write(v.Out, shown); err != nil {
		return err
	}
	where := " in " + v.Where()
	if v.text != "" {
		where = " in " + v.text
	}
	switch {
	case longest == 0:
		v.Say.Note("no address is free%s", where)
	case len(shown) == 0:
		v.Say.Note("no %d addresses in a row are free%s: at most %d are", v.run, where, longest)
	default:
		v.Say.Note("%s free, in %s", humanize.Plural(total, "address"), humanize.Plural(len(shown), "range"))
	}
	return nil
}

// rows returns the free ranges of the selected pools.
func (v *ipFree) rows(ctx context.Context) ([]run, error) {
	choose := view.Among(v.within)
	if v.pool != "" {
		choose = (*view.Inspection).Pool
	}
	found, err := view.Inspect(ctx, v.App, v.pool, choose)
	if err != nil {
		return nil, err
	}
	if len(found.Chosen) == 0 && v.within != nil {
		return nil, app.Refuse(ipam.ReasonAddressNotInPool, "no pool has addresses of %s", v.text).
			WithHint("see what pools have: bcsnetctl pool list")
	}
	var rows []run
	for _, one := range found.Pools() {
		free := one.Free
		if v.within != nil {
			free = ipaddr.Intersect(free, v.within)
		}
		if one.Stopped != "" && len(free.Ranges()) > 0 {
			v.Say.Warn("pool %s allocates nothing: %s", one.Pool.Name, one.Stopped)
		}
		for _, r := range free.Ranges() {
			rows = append(rows, run{r, one.Pool.Name})
		}
	}
	return rows, nil
}

func runColumns() []printer.Column[run] {
	return []printer.Column[run]{
		{Name: "RANGE", Cell: func(r run) string { return ipaddr.FormatRange(r.IPRange) }},
		{Name: "ADDRESSES", Cell: func(r run) string { return app.Count(app.Saturated(r.size())) }},
		{Name: "POOL", Cell: func(r run) string { return r.pool }},
	}
}

// runFields returns the fields of a row for -o json and similar formats.
func runFields(r run) map[string]any {
	return map[string]any{
		"pool": r.pool, "range": ipaddr.FormatRange(r.IPRange), "from": r.From().String(), "to": r.To().String(),
		"addresses": app.Saturated(r.size()),
	}
}

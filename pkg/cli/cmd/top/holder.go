package top

import (
	"cmp"
	"context"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// topHolder shows the hosts or namespaces with addresses.
type topHolder struct {
	*app.App
	output printer.Output
	pool   string
	order  order[holderTop]
	// noun is the kind of holder. of returns the name of an address's holder; empty if there is none.
	noun string
	of   func(resource.HeldAddr) string
	// held has the watched addresses by object name, trends the holders.
	held   map[string]resource.HeldAddr
	trends map[string]*trend
	// whole: all addresses have been read. begun: they were counted once. stale: they changed since the last count.
	whole, begun, stale bool
}

func newHost(s *app.App) *cobra.Command {
	return holderCommand(s, "host", []string{"hosts", "node", "nodes"},
		func(a resource.HeldAddr) string { return resource.AddrText(a.Host) })
}

func newNamespace(s *app.App) *cobra.Command {
	return holderCommand(s, "namespace", []string{"namespaces", "ns"},
		func(a resource.HeldAddr) string { return a.Pod.Namespace })
}

func holderCommand(s *app.App, noun string, aliases []string, of func(resource.HeldAddr) string) *cobra.Command {
	v := &topHolder{
		App: s, noun: noun, of: of, order: order[holderTop]{known: holderOrders()},
		held: map[string]resource.HeldAddr{}, trends: map[string]*trend{},
	}
	cmd := &cobra.Command{
		Use: noun, Aliases: aliases, Args: app.Takes(0, 0), RunE: app.Runs(v),
		ValidArgsFunction: cobra.NoFileCompletions,
		Short:             "Show the " + noun + "s that hold the most addresses",
		Long: `Show the ` + noun + `s that hold addresses, those with the most first. PODS are the
pods that hold them. NEW counts the addresses that were taken in the last ten
minutes and are still held. With --watch, RATE is how many more are held in a
minute, over the last ten minutes or since the view began.`,
		Example: `  bcsnetctl top ` + noun + `
  bcsnetctl top ` + noun + ` --pool blue -w
  bcsnetctl top ` + noun + ` --sort-by new`,
	}
	v.output.AddToViews(cmd)
	follow.AddWatch(&v.output, cmd)
	v.order.addTo(cmd)
	cmd.Flags().StringVar(&v.pool, "pool", "", "count only addresses of this `POOL`")
	app.CompleteWith(cmd, "pool", resource.CompletePools(s))
	return cmd
}

func (v *topHolder) Validate() error {
	return cmp.Or(v.order.validate(v.output.Watch), v.output.Validate())
}

func (v *topHolder) Run(ctx context.Context) error {
	query := resource.LeaseQuery{Pool: v.pool, Status: lease.Active.String()}
	if v.output.Watch {
		return v.watch(ctx, query)
	}
	if err := query.Each(ctx, v.App, false, func(r resource.LeaseRow) error {
		v.held[r.Addr.String()] = resource.HeldAddrOf(*r.Lease)
		return nil
	}); err != nil {
		return err
	}
	if len(v.held) == 0 {
		if err := query.Empty(ctx, v.App, "leases"); err != nil || v.output.Printer == nil {
			return err
		}
	}
	rows := v.rows()
	if v.output.Printer != nil {
		return v.output.Object(v.Out, printer.NewViews(v.kind(), rows, v.fields))
	}
	if err := printer.NewTable(&v.output, v.columns()).Write(v.Out, rows); err != nil {
		return err
	}
	v.Say.Note("%s", v.summary(rows))
	return nil
}

func (v *topHolder) watch(ctx context.Context, query resource.LeaseQuery) error {
	show := func(w io.Writer, h holderTop) error {
		return v.output.Object(w, printer.NewView(v.kind(), v.fields(h)))
	}
	w := &follow.Watched[holderTop]{
		View:    follow.NewView(v.App, &v.output, v.columns(), show, v.summary),
		Compare: v.order.compare,
		Ranked:  true,
		Items:   map[string]holderTop{},
	}
	from := follow.Source{Kind: resource.Of(v1.IPResource), Which: metav1.ListOptions{FieldSelector: query.Selector()}}
	take := func(c follow.Change) error {
		v.stale = true
		if c.Kind == watch.Bookmark {
			v.whole = true
			return nil
		}
		return follow.Mirror(v.held, c, resource.ReadHeldAddr)
	}
	tick := func() error {
		if v.whole && v.stale {
			v.stale = false
			if err := w.Become(v.rows(), func(h holderTop) string { return h.who }); err != nil {
				return err
			}
		}
		return w.View.Refresh(w)
	}
	return follow.Run(ctx, v.App, []follow.Source{from}, take, tick)
}

// rows returns the holders in order. A holder without addresses has no row, but its trend continues.
func (v *topHolder) rows() []holderTop {
	by := resource.LeaseUsage[string]{}
	for _, name := range slices.Sorted(maps.Keys(v.held)) { // so that equal rows are equal
		by.Add(v.of(v.held[name]), v.held[name])
	}
	for who := range by {
		if v.trends[who] == nil {
			v.trends[who] = &trend{now: v.Now}
			if v.begun { // it held nothing until now
				v.trends[who].add(0)
			}
		}
	}
	v.begun = true
	for who, t := range v.trends {
		var n int
		if by[who] != nil {
			n = by[who].Addresses
		}
		t.add(int64(n))
	}
	out := make([]holderTop, 0, len(by))
	for _, who := range slices.Sorted(maps.Keys(by)) {
		out = append(out, holderTop{who: who, Stake: by[who], trend: v.trends[who]})
	}
	slices.SortFunc(out, v.order.compare)
	return out
}

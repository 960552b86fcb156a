package usage

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type usage struct {
	*app.App
	output     printer.Output
	prometheus view.Prometheus
	names      []string
	block      string
	bits       int // bits of block; 0 means automatic
	by         string
}

// New returns the command usage.
func New(s *app.App) *cobra.Command {
	cmd := command(s)
	cmd.Use, cmd.GroupID = "usage [POOL...]", "objects"
	cmd.Short = "Show how full pools are, or which addresses of one are taken"
	cmd.Example = `  bcsnetctl usage
  bcsnetctl usage blue
  bcsnetctl usage blue --block /28
  bcsnetctl usage --by namespace
  bcsnetctl usage --prometheus https://prometheus.example.com`
	return cmd
}

// NewOfPool returns the command pool usage, which needs a pool's name.
func NewOfPool(s *app.App) *cobra.Command {
	cmd := command(s)
	cmd.Use, cmd.Args = "usage POOL...", app.Takes(1, 0)
	cmd.Short = "Show which addresses of a pool are taken"
	cmd.Example = `  bcsnetctl pool usage blue
  bcsnetctl pool usage blue --by host`
	return cmd
}

func command(s *app.App) *cobra.Command {
	v := &usage{App: s}
	cmd := &cobra.Command{
		Args: cobra.ArbitraryArgs, RunE: app.Runs(v),
		Long: `Show which addresses of a pool are taken: a map with one cell an address, or one
cell a block if the pool has more than 4096. With --by, -o csv or without a
pool, a table of who takes how much, for namespaces with the blocks that they
own. A pool that is split into blocks has what these have. An address is a
problem when it drains, when it is being deleted, or when a host has it that is
not in the pool. A cooling address counts as taken.`,
		ValidArgsFunction: resource.CompletePools(s),
	}
	cmd.Flags().StringVar(&v.block, "block", "", "size of a cell as a prefix `LENGTH`, such as /28")
	cmd.Flags().StringVar(&v.by, "by", "", "a table by `WHAT`: host, namespace or pool")
	app.Complete(cmd, "by", byValues()...)
	app.Complete(cmd, "block", "/24", "/26", "/28", "/30")
	v.prometheus.AddTo(cmd)
	v.output.AddToView(cmd, printer.FormatCSV)
	v.output.AddNoHeaders(cmd)
	v.output.AddSort(cmd, ".free")
	return cmd
}

func byValues() []string { return []string{"host", "namespace", "pool"} }

func (v *usage) Complete(args []string) error {
	v.names = app.SortedOnce(args)
	return nil
}

func (v *usage) Validate() (err error) {
	if v.by == "" && (len(v.names) == 0 || v.output.CSV()) {
		v.by = "pool"
	}
	switch {
	case v.by != "" && !slices.Contains(byValues(), v.by):
		return app.Usagef("--by %q is not host, namespace or pool", v.by)
	case v.output.Sort.Text != "" && v.by == "":
		return app.Usagef(
			"--sort-by is for the tables of --by").WithHint("for example: %s usage %s --by host --sort-by .active",
			v.Name, v.names[0])
	case v.block != "" && v.by != "":
		return app.Usagef("--block applies only to the map of a pool").WithHint("name a pool, and leave out --by")
	}
	if err := v.prometheus.Validate(); err != nil {
		return err
	}
	if v.prometheus.Given() && v.by != "pool" {
		return app.Usagef("--prometheus applies only to the table of pools").WithHint("add --by pool")
	}
	if v.block != "" {
		if v.bits, err = strconv.Atoi(strings.TrimPrefix(v.block, "/")); err != nil || v.bits < 1 {
			return app.Usagef("--block %q is not a prefix length such as /28", v.block)
		}
	}
	return v.output.Validate()
}

func (v *usage) Run(ctx context.Context) error {
	chosen, side, of, err := v.choose(ctx)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		v.Say.Note("no pools in %s", v.Where())
		return nil
	}
	var all []ipam.Pool
	known := map[string]ipam.Pool{}
	byPool := map[string][]lease.Lease{}
	nodes := resource.Known(resource.NodesFor(ctx, v.App, chosen...))
	for _, p := range chosen {
		known[p.Name] = side[p.Name].WithNodes(nodes)
		all = append(all, known[p.Name])
	}
	now := v.Now()
	names := v.names
	if len(names) > 0 {
		names = slices.Concat(names, of.names())
	}
	taken, err := resource.LeasesHeldIn(ctx, v.App, names, func(l lease.Lease) bool {
		return l.State != lease.Available || resource.CoolingIn(known[of.parent(l)], l, now)
	})
	if err != nil {
		return err
	}
	for _, l := range taken {
		l.Pool = of.parent(l)
		byPool[l.Pool] = append(byPool[l.Pool], l)
	}
	if v.by != "" {
		rows := countShares(v.by, chosen, known, byPool, of.owned())
		trends := view.Trends(ctx, v.App, &v.prometheus, chosen)
		for i, r := range rows {
			rows[i].trend = trends[r.who]
		}
		return v.table(rows)
	}
	var maps []view.Map
	for _, p := range all {
		m, err := v.draw(p, byPool[p.Name])
		if err != nil {
			return err
		}
		maps = append(maps, m)
	}
	return v.print(maps)
}

// draw returns the map of a pool, in blocks of --block.
func (v *usage) draw(p ipam.Pool, taken []lease.Lease) (view.Map, error) {
	subnet := p.Plan.Subnet
	bits := v.bits
	switch {
	case !p.Valid():
		return view.Map{}, app.Refuse(app.ReasonPoolInvalid, "the spec of pool %s cannot be used: %s", p.Name,
			p.Problem).
			WithHint("correct it: bcsnetctl pool edit %s", p.Name)
	case bits == 0:
		bits = view.BlockBits(p)
	case bits < subnet.Bits() || bits > subnet.Addr().BitLen():
		return view.Map{}, app.Usagef("--block /%d is not a part of the subnet %s of pool %s", bits, subnet, p.Name).
			WithHint("choose a length from /%d to /%d", subnet.Bits(), subnet.Addr().BitLen())
	}
	return view.NewMap(p, taken, bits), nil
}

func (v *usage) print(maps []view.Map) error {
	var b bytes.Buffer
	switch {
	case v.output.Printer != nil && len(maps) == 1:
		return v.output.Object(v.Out, printer.NewView(mapKind, mapFields(maps[0])))
	case v.output.Printer != nil:
		return v.output.Object(v.Out, printer.NewViews(mapKind, maps, mapFields))
	default:
		for i, m := range maps {
			if i > 0 {
				b.WriteString("\n")
			}
			draw(m, &b, v.Terminal)
		}
	}
	_, err := v.Out.Write(b.Bytes())
	return err
}

package export

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

type verb struct {
	*app.App
	output printer.Output
	query  resource.LeaseQuery
	dir    string
	tables []string
}

// New returns the command export.
func New(s *app.App) *cobra.Command {
	v := &verb{App: s}
	cmd := &cobra.Command{
		Use: "export [prefixes|ip-ranges|ip-addresses]", Args: app.Takes(0, 1), RunE: app.Runs(v), GroupID: "other",
		Short: "Write prefixes, ranges and addresses for NetBox or another system",
		Long: `Write what the network team's system knows of pools: the tables that NetBox
takes for its bulk import, as prefixes.csv, ip-ranges.csv and ip-addresses.csv
in a directory, or one of them on standard output. With -o json, the same for
other programs: one JSON object a line.

Addresses are those that somebody has (active), and those that are reserved,
kept or quarantined (reserved). The DNS name is POD.NAMESPACE or the owner. A
cordoned pool's ranges are reserved, and deprecated if it is being deleted. If
nothing changed, the files are equal byte by byte.

--pool chooses the pool of all tables; the other filters choose addresses.`,
		Example: `  bcsnetctl export --dir netbox
  bcsnetctl export ip-addresses --pool blue > ip-addresses.csv
  bcsnetctl export -o json | jq -r 'select(.table == "ip-addresses").address'`,
		ValidArgs: tables(),
	}
	cmd.Flags().StringVar(&v.dir, "dir", "", "write the three tables into this `DIRECTORY`")
	v.output.Add(cmd, []string{printer.FormatCSV, "json"})
	v.query.AddTo(s, cmd)
	return cmd
}

func (v *verb) Complete(args []string) error {
	if v.tables = tables(); len(args) == 0 {
		return nil
	}
	if !slices.Contains(v.tables, args[0]) {
		return app.Usagef("there is no table %q", args[0]).WithHint("the tables are %s", humanize.List(v.tables))
	}
	v.tables = args
	return nil
}

func (v *verb) json() bool { return *v.output.Flags.OutputFormat == "json" }

func (v *verb) Validate() error {
	if err := v.query.Validate(); err != nil {
		return err
	}
	switch {
	case v.dir != "" && v.json():
		return app.Usagef("--dir takes tables: -o json goes to standard output")
	case v.dir != "" && len(v.tables) == 1:
		return app.Usagef("--dir takes all tables: without it, %s goes to standard output", v.tables[0])
	case v.dir == "" && len(v.tables) > 1 && !v.json():
		return app.Usagef("name a directory with --dir, or one of the tables %s", humanize.List(v.tables))
	}
	return v.output.Validate()
}

func (v *verb) Run(ctx context.Context) error {
	if v.dir != "" {
		if err := os.MkdirAll(v.dir, 0o750); err != nil {
			return &app.Failure{Message: err.Error(), Cause: err}
		}
	}
	for _, table := range v.tables {
		rows, err := v.read(ctx, table)
		if err != nil {
			return err
		}
		if err := v.write(table, rows); err != nil {
			return err
		}
	}
	return nil
}

// read returns the rows of a table in order.
func (v *verb) read(ctx context.Context, table string) ([]row, error) {
	defer v.Say.WaitLater("reading " + table + " in " + v.Where())()
	if table == ipAddresses {
		return v.addresses(ctx)
	}
	api, err := resource.NewPools(v.App)
	if err != nil {
		return nil, err
	}
	all, err := api.List(ctx)
	if err != nil {
		return nil, err
	}
	if v.query.Pool != "" {
		if _, err := api.Get(ctx, v.query.Pool); err != nil {
			return nil, err
		}
	}
	all = slices.DeleteFunc(resource.WithoutBlocks(all), func(p resource.Pool) bool {
		return !store.Pool(p.BCSNetPool).Valid()
	})
	wanted := func(p resource.Pool) bool { return v.query.Pool == "" || v.query.Pool == p.Name }
	if table == prefixes {
		return prefixRows(slices.DeleteFunc(all, func(p resource.Pool) bool { return !wanted(p) })), nil
	}
	rows, left := rangeRows(all, wanted)
	if left > 0 {
		v.Say.Note("%s left out: NetBox takes only ranges of 2 to 2^32-1 addresses",
			humanize.Plural(left, "range")+" "+humanize.OneOr(left, "is", "are"))
	}
	return rows, nil
}

func (v *verb) addresses(ctx context.Context) (rows []row, err error) {
	if _, _, err := v.query.ReadOutdated(ctx, v.App, nil); err != nil {
		return nil, err
	}
	err = v.query.Each(ctx, v.App, true, func(r resource.LeaseRow) error {
		if r.State != lease.Available {
			rows = append(rows, addressRow(*r.Lease))
		}
		return nil
	})
	slices.SortStableFunc(rows, inOrder)
	// an address that migrates is found at both hosts
	return slices.CompactFunc(rows, func(a, b row) bool { return a.first == b.first }), err
}

// write writes a table to its file, or to standard output.
func (v *verb) write(table string, rows []row) error {
	file := "-"
	if v.dir != "" {
		file = filepath.Join(v.dir, table+".csv")
	}
	err := app.WriteFile(v.App, file, func(to io.Writer) error {
		if v.json() {
			return writeLines(to, rows)
		}
		lines := [][]string{heading(table)}
		for _, r := range rows {
			lines = append(lines, r.cells())
		}
		return printer.WriteCSV(to, lines)
	})
	if err == nil && v.dir != "" {
		v.Say.Done("%s: %s", file, humanize.Plural(len(rows), "row"))
	}
	return err
}

func writeLines(to io.Writer, rows []row) error {
	b := bufio.NewWriter(to)
	for _, r := range rows {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := b.WriteString(humanize.Visible(string(line)) + "\n"); err != nil {
			return err
		}
	}
	return b.Flush()
}

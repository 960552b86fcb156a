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
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type ipFind struct {
	*app.App
	output printer.Output
	text   string
	typed  string // text, before it is read
	// only has the kinds to search, by the name of their flag. If no flag is set, all kinds are searched.
	only map[string]*bool
	// active leaves out reserved addresses.
	active bool
}

func newFind(s *app.App, group string) *cobra.Command {
	v := &ipFind{App: s, only: map[string]*bool{}, active: group == "lease"}
	cmd := &cobra.Command{
		Use: "find TEXT", Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Find addresses by pod, container, host, claim, MAC and more",
		Long: `Find the addresses that have to do with TEXT: the name of a pod, as POD or
NAMESPACE/POD, the ID of a container, the IP of a host, a namespace, a claim, an
address, its MAC, or the name given to ip allocate --for. If nothing has exactly
that name, names and IDs that begin with TEXT count; of an ID, 4 digits or more.
Only addresses ` + v.what() + ` are found.

A flag has TEXT mean only that; several flags, any of those.`,
		Example: `  bcsnetctl ip find web-0
  bcsnetctl ip find payments/web
  bcsnetctl ip find 4f1c2a77 --container
  bcsnetctl ip find 10.0.0.11 --host -o wide`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.AddTo(cmd)
	v.output.AddSort(cmd, ".status.updateTime")
	for _, k := range view.FindKinds() {
		if k.Flag != "" {
			v.only[k.Flag] = cmd.Flags().Bool(k.Flag, false, "TEXT is "+k.Help)
		}
	}
	return resource.Under(group, cmd)
}

func (v *ipFind) Complete(args []string) error {
	v.typed = strings.TrimSpace(args[0])
	v.text = resource.AddressWord(v.typed)
	if _, id, ok := strings.Cut(v.text, "://"); ok { // as kubectl shows container IDs
		v.text = id
	}
	return nil
}

func (v *ipFind) Validate() error {
	if v.text == "" {
		return app.Usagef("there is no text to look for")
	}
	if len(v.kinds()) == 0 {
		var wanted []string
		for _, k := range view.FindKinds() {
			if on := v.only[k.Flag]; on != nil && *on {
				wanted = append(wanted, k.Help)
			}
		}
		return app.Usagef("%q cannot be %s", v.text, strings.Join(wanted, ", nor "))
	}
	return v.output.Validate()
}

// kinds returns the kinds to search.
func (v *ipFind) kinds() []view.FindKind {
	chosen := false
	for _, on := range v.only {
		chosen = chosen || *on
	}
	return slices.DeleteFunc(view.FindKinds(), func(k view.FindKind) bool {
		on := v.only[k.Flag]
		return chosen && (on == nil || !*on) || !k.May(v.text)
	})
}

func (v *ipFind) Run(ctx context.Context) error {
	if err := resource.FitLengths(ctx, v.App, []string{v.typed}); err != nil {
		return err
	}
	found, err := view.Find(ctx, v.App, v.text, v.kinds(), v.active)
	if err != nil {
		return err
	}
	rows := found.Sorted()
	if len(rows) == 0 {
		return v.nothing()
	}
	if err := printer.Sorted(&v.output.Sort, rows,
		func(l lease.Lease) (printer.SortKey, error) { return resource.LeaseSortKey(&v.output.Sort, l) }); err != nil {
		return err
	}
	columns := resource.LeaseColumns(v.App, !v.active)
	if !v.active && v.output.Printer == nil {
		statuses, _ := resource.NewStatuses(ctx, v.App) // nil if the user may not read pools
		columns = statuses.In(columns)
	}
	if err := resource.PrintLeases(v.App, &v.output, columns, rows); err != nil {
		return err
	}
	v.Say.Note("%s", found.Summary(v.text))
	return nil
}

// what describes the addresses that are counted.
func (v *ipFind) what() string {
	if v.active {
		return "in use"
	}
	return "in use or reserved"
}

func (v *ipFind) nothing() error {
	looked := app.Map(v.kinds(),
		func(k view.FindKind) string { return strings.TrimPrefix(humanize.Plural(2, k.Noun), "2 ") })
	f := app.Refuse(ipam.ReasonNotFound, "no address %s has to do with %q: looked for %s in %s", v.what(), v.text,
		strings.Join(looked, ", "), v.Where())
	if a, err := ipaddr.ParseAddr(v.text); err == nil {
		return f.WithHint("see whether it is free, and in which pool: bcsnetctl ip describe %s", a)
	}
	if v.active {
		return f.WithHint("see all addresses in use: bcsnetctl lease list")
	}
	return f.WithHint("see all addresses: bcsnetctl ip list")
}

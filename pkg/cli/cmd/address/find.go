package address

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

type ipFind struct {
	*app.App
	output printer.Output
	text   string
	typed  string // text, before it is read
	// only are the kinds that the flags name, by the name of the flag; none for all.
	only map[string]*bool
	// active leaves out what is reserved.
	active bool
}

func newFind(s *app.App, group string) *cobra.Command {
	v := &ipFind{App: s, only: map[string]*bool{}, active: group == "lease"}
	cmd := &cobra.Command{
		Use: "find TEXT", Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Find addresses by pod, container, host, namespace or name",
		Long: `Find the addresses that have to do with TEXT: the name of a pod, alone or as
NAMESPACE/POD, the ID of a container, the IP of a host, a namespace, an address,
or the name given to ip allocate --for. Where nothing has that very name, names
and IDs that begin with TEXT count; of an ID, 4 digits or more. Only addresses
` + v.what() + ` are found.

A flag has TEXT mean only that; several flags, any of those.`,
		Example: `  bcsnetctl ip find web-0
  bcsnetctl ip find payments/web
  bcsnetctl ip find 4f1c2a77 --container
  bcsnetctl ip find 10.0.0.11 --host -o wide`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.output.AddTo(cmd)
	v.output.AddSort(cmd, ".status.updateTime")
	for _, k := range findKinds() {
		if k.flag != "" {
			v.only[k.flag] = cmd.Flags().Bool(k.flag, false, "TEXT is "+k.help)
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
		for _, k := range findKinds() {
			if on := v.only[k.flag]; on != nil && *on {
				wanted = append(wanted, k.help)
			}
		}
		return app.Usagef("%q cannot be %s", v.text, strings.Join(wanted, ", nor "))
	}
	return v.output.Validate()
}

// kinds returns the kinds of things that the text may be.
func (v *ipFind) kinds() []findKind {
	chosen := false
	for _, on := range v.only {
		chosen = chosen || *on
	}
	return slices.DeleteFunc(findKinds(), func(k findKind) bool {
		on := v.only[k.flag]
		return chosen && (on == nil || !*on) || !k.may(v.text)
	})
}

func (v *ipFind) Run(ctx context.Context) error {
	if err := resource.FitLengths(ctx, v.App, []string{v.typed}); err != nil {
		return err
	}
	leases, err := v.Leases()
	if err != nil {
		return err
	}
	found, err := v.exactly(ctx, leases)
	prefix := false
	if err == nil && len(found.rows) == 0 {
		prefix = true
		found, err = v.beginning(ctx, leases)
	}
	if err != nil {
		return resource.Explain(v.App, err)
	}
	if len(found.rows) == 0 {
		return v.nothing()
	}
	rows := found.sorted()
	if err := printer.Sorted(&v.output.Sort, rows,
		func(l lease.Lease) (printer.SortKey, error) { return resource.LeaseSortKey(&v.output.Sort, l) }); err != nil {
		return err
	}
	columns := resource.LeaseColumns(v.App, !v.active)
	if !v.active && v.output.Printer == nil {
		statuses, _ := resource.NewStatuses(ctx, v.App) // nil for somebody who may not read pools
		columns = statuses.In(columns)
	}
	if err := resource.PrintLeases(v.App, &v.output, columns, rows); err != nil {
		return err
	}
	v.Say.Note("%s", found.summary(v.text, prefix))
	return nil
}

// exactly asks the API server for each kind.
func (v *ipFind) exactly(ctx context.Context, leases *store.Client) (*findings, error) {
	kinds := v.kinds()
	parts := make([][]lease.Lease, len(kinds))
	group, ctx := errgroup.WithContext(ctx)
	for i, k := range kinds {
		group.Go(func() (err error) {
			if k.selector == nil {
				l, err := leases.Get(ctx, netip.MustParseAddr(v.text)) // may has seen that it is one
				if err == nil {
					parts[i] = []lease.Lease{l}
				}
				if errors.Is(err, store.ErrNotFound) && !resource.NoSuchResource(err) {
					err = nil
				}
				return err
			}
			parts[i], err = leases.List(ctx, k.selector(v.text))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := newFindings()
	for i, k := range kinds {
		for _, l := range parts[i] {
			if v.counts(l) {
				found.add(l, k.noun)
			}
		}
	}
	return found, nil
}

// beginning reads all addresses that somebody has.
func (v *ipFind) beginning(ctx context.Context, leases *store.Client) (*findings, error) {
	found, kinds := newFindings(), v.kinds()
	return found, leases.Each(ctx, "status.status!="+lease.Available.String(), func(l lease.Lease) error {
		for _, k := range kinds {
			if k.begins != nil && v.counts(l) && k.begins(l, v.text) {
				found.add(l, k.noun)
			}
		}
		return nil
	})
}

func (v *ipFind) counts(l lease.Lease) bool {
	return l.State == lease.Active || l.State == lease.Reserved && !v.active
}

// what names the addresses that count.
func (v *ipFind) what() string {
	if v.active {
		return "in use"
	}
	return "in use or reserved"
}

func (v *ipFind) nothing() error {
	var looked []string
	for _, k := range v.kinds() {
		looked = append(looked, strings.TrimPrefix(humanize.Plural(2, k.noun), "2 "))
	}
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

package pool

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/store"
)

type poolImport struct {
	*app.App
	files []string
}

func newImport(s *app.App) *cobra.Command {
	v := &poolImport{App: s}
	cmd := &cobra.Command{
		Use: "import -f FILE", Aliases: []string{"restore"}, Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "Create pools from an export, with addresses that were held",
		Long: `Make the pools of a file that are not in the cluster, and set aside the
addresses that were set aside when bcsnetctl pool export wrote it, in the name
of who did and with the reason. Owners that are no pods, such as machines, get
the addresses that they had. A new pool is cordoned until that is done, so that
nobody else gets one of them. Pools that are there stay as they are, but for
what they lack of that; what somebody holds by now is named and left alone.

What failed or was interrupted can be run again: it does the rest.`,
		Example: `  bcsnetctl pool import -f pools.yaml --dry-run=client
  bcsnetctl pool export --all | bcsnetctl --context other pool import -f -`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringArrayVarP(&v.files, "filename", "f", nil, "`FILE` with pools; - is standard input; repeatable")
	s.DryRun.AddTo(cmd)
	return cmd
}

func (v *poolImport) Complete([]string) error { return nil }

func (v *poolImport) Validate() error {
	if len(v.files) == 0 {
		return app.Usagef("name a file with -f")
	}
	return nil
}

func (v *poolImport) Run(ctx context.Context) error {
	all, err := readManifests(v.App, v.files)
	if err != nil {
		return err
	}
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	if err := v.fits(ctx, api, all); err != nil {
		return err
	}
	resource.OutlivePipes()
	var failed app.Several
	for _, m := range all {
		failed = append(failed, app.Flatten(v.one(ctx, api, m))...)
		if ctx.Err() != nil {
			break
		}
	}
	return failed.OrNil()
}

// fits refuses groups that do not fit their parents, before anything is created. A file may have both, in any order.
func (v *poolImport) fits(ctx context.Context, api *resource.Pools, all []manifest) error {
	list, err := api.List(ctx)
	if err != nil {
		return err
	}
	existing := resource.Given(list)
	var made []ipam.Pool
	for _, m := range all {
		if !slices.ContainsFunc(existing, func(p ipam.Pool) bool { return p.Name == m.pool.Name }) {
			made = append(made, store.Pool(m.pool.BCSNetPool))
		}
	}
	return resource.NewFit(existing, made...).Check(ctx, v.App)
}

// one creates a missing pool, and restores its reservations and owners.
func (v *poolImport) one(ctx context.Context, api *resource.Pools, m manifest) error {
	existing, err := api.ListWith(ctx, metav1.ListOptions{FieldSelector: follow.Named(m.pool.Name)})
	if err != nil {
		return err
	}
	created := len(existing) == 0
	if created {
		if err := v.create(ctx, api, m); err != nil {
			return err
		}
		v.Say.Done("pool %s created", m.pool.Name)
	} else {
		v.Say.Note("pool %s is there and stays as it is; to compare: bcsnetctl pool diff -f %s", m.pool.Name, m.from)
	}
	var failed app.Several
	for _, r := range m.reserved {
		failed = append(failed, app.Flatten(v.reserve(ctx, r, created))...)
	}
	failed = append(failed, v.giveBack(ctx, m.pool.Name, m.owners, created)...)
	if !created || m.pool.Spec.Cordoned || !m.holds() || v.DryRun != app.DryRunNone {
		return failed.OrNil()
	}
	if ctx.Err() != nil {
		v.Say.Warn("pool %s stays cordoned: not all that was held in it is made again", m.pool.Name)
		v.Hint("run it again, then: bcsnetctl pool uncordon %s", m.pool.Name)
		return failed.OrNil()
	}
	uncordon := func(resource.Pool) (map[string]any, error) { return map[string]any{"cordoned": nil}, nil }
	if _, err := api.Edit(ctx, m.pool.Name, uncordon); err != nil {
		failed = append(failed, err)
	}
	return failed.OrNil()
}

// holds reports whether the file has reservations or owners, which must be restored before the pool allocates.
func (m manifest) holds() bool { return len(m.reserved)+len(m.owners) > 0 }

// create creates a pool. If reservations or owners must be restored, the pool is cordoned at first.
func (v *poolImport) create(ctx context.Context, api *resource.Pools, m manifest) error {
	if v.DryRun == app.DryRunClient {
		return nil
	}
	o := m.pool.Stored.DeepCopy()
	if m.holds() {
		if err := unstructured.SetNestedField(o.Object, true, "spec", "cordoned"); err != nil {
			return err
		}
	}
	_, err := api.API.Create(ctx, o, metav1.CreateOptions{FieldManager: app.ProgramName, DryRun: v.DryRun.Options()})
	return resource.Explain(v.App, err)
}

// reserve sets addresses aside again. Before the pool exists, nobody can know who holds them.
func (v *poolImport) reserve(ctx context.Context, r reservedRange, created bool) error {
	entries, err := r.entries()
	if err != nil {
		return err
	}
	if created && v.DryRun != app.DryRunNone {
		v.Say.Done("%s reserved: %s", humanize.Plural(len(resource.AddressesOf(entries)), "address"),
			resource.Spell(ipaddr.SetOf(resource.RangesOf(entries)...)))
		return nil
	}
	again := &leasing.SetAside{App: v.App, Entries: entries, Reason: r.Reason, By: r.By, Reserve: true, Again: true}
	again.Output.Add(&cobra.Command{}, printer.ObjectFormats())
	return again.Run(ctx)
}

package cli

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

type poolImport struct {
	*session
	files []string
}

func newPoolImport(s *session) *cobra.Command {
	v := &poolImport{session: s}
	cmd := &cobra.Command{
		Use: "import -f FILE", Aliases: []string{"restore"}, Args: takes(0, 0), RunE: runs(v),
		Short: "Make pools again that pool export wrote, with their reservations",
		Long: `Make the pools of a file that are not in the cluster, and set aside the addresses
that were set aside when bcsnetctl pool export wrote it, in the name of who did
and with the reason. A new pool is cordoned until that is done, so that nobody
gets one of them. Pools that are there stay as they are, but for reservations
that they lack; what somebody holds by now is named and left alone.

What failed or was interrupted can be run again: it does the rest.`,
		Example: `  bcsnetctl pool import -f pools.yaml --dry-run=client
  bcsnetctl pool export --all | bcsnetctl --context other pool import -f -`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringArrayVarP(&v.files, "filename", "f", nil, "`FILE` with pools; - is standard input; repeatable")
	s.dry.addTo(cmd)
	return cmd
}

func (v *poolImport) Complete([]string) error { return nil }

func (v *poolImport) Validate() error {
	if len(v.files) == 0 {
		return usagef("name a file with -f")
	}
	return nil
}

func (v *poolImport) Run(ctx context.Context) error {
	all, err := v.readManifests(v.files)
	if err != nil {
		return err
	}
	api, err := v.pools()
	if err != nil {
		return err
	}
	outlivePipes()
	var failed several
	for _, m := range all {
		failed = append(failed, flatten(v.one(ctx, api, m))...)
		if ctx.Err() != nil {
			break
		}
	}
	return failed.orNil()
}

// one makes a pool unless it is there, and sets aside what was set aside in it.
func (v *poolImport) one(ctx context.Context, api *pools, m manifest) error {
	existing, err := api.listWith(ctx, metav1.ListOptions{FieldSelector: named(m.pool.Name)})
	if err != nil {
		return err
	}
	created := len(existing) == 0
	if created {
		if err := v.create(ctx, api, m); err != nil {
			return err
		}
		v.say.done("pool %s created", m.pool.Name)
	} else {
		v.say.note("pool %s is there and stays as it is; to compare: bcsnetctl pool diff -f %s", m.pool.Name, m.from)
	}
	var failed several
	for _, r := range m.reserved {
		failed = append(failed, flatten(v.reserve(ctx, r, created))...)
	}
	if !created || m.pool.Spec.Cordoned || len(m.reserved) == 0 || v.dry != dryRunNone {
		return failed.orNil()
	}
	if ctx.Err() != nil {
		v.say.warn("pool %s stays cordoned: not all of its reservations are made", m.pool.Name)
		v.hint("run it again, then: bcsnetctl pool uncordon %s", m.pool.Name)
		return failed.orNil()
	}
	_, err = api.edit(ctx, m.pool.Name, func(pool) (map[string]any, error) { return map[string]any{"cordoned": nil}, nil })
	if err != nil {
		failed = append(failed, err)
	}
	return failed.orNil()
}

// create makes a pool, which hands out nothing until its reservations are made.
func (v *poolImport) create(ctx context.Context, api *pools, m manifest) error {
	if v.dry == dryRunClient {
		return nil
	}
	o := m.pool.stored.DeepCopy()
	if len(m.reserved) > 0 {
		if err := unstructured.SetNestedField(o.Object, true, "spec", "cordoned"); err != nil {
			return err
		}
	}
	_, err := api.api.Create(ctx, o, metav1.CreateOptions{FieldManager: programName, DryRun: v.dry.options()})
	return v.explain(err)
}

// reserve sets addresses aside again. Before a pool is made nobody can tell who holds them.
func (v *poolImport) reserve(ctx context.Context, r reservedRange, created bool) error {
	entries, err := r.entries()
	if err != nil {
		return err
	}
	if created && v.dry != dryRunNone {
		v.say.done("%s reserved: %s", humanize.Plural(len(addressesOf(entries)), "address"), spell(ipaddr.SetOf(rangesOf(entries)...)))
		return nil
	}
	again := &ipReserve{session: v.session, entries: entries, reason: r.Reason, by: r.By, reserve: true, again: true}
	again.output.add(&cobra.Command{}, objectFormats())
	return again.Run(ctx)
}

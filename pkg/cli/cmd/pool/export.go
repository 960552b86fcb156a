package pool

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer/backup"
)

type poolExport struct {
	*app.App
	output printer.Output
	names  []string
	all    bool
}

func newExport(s *app.App) *cobra.Command {
	v := &poolExport{App: s}
	cmd := &cobra.Command{
		Use: "export POOL...", Args: cobra.ArbitraryArgs, RunE: app.Runs(v),
		Short: "Print pools as files that kubectl apply takes",
		Long: `Print pools as they would be written down: without status and without what the
cluster keeps in them for itself. kubectl apply --server-side -f takes the
output, in this cluster or another one; bcsnetctl pool diff -f compares it.

Claims, and who has which address, are not in it: bcsnetctl backup saves them,
too. With --all, pools that are being deleted are left out.`,
		Example: `  bcsnetctl pool export blue > blue.yaml
  bcsnetctl pool export --all | bcsnetctl --context other pool diff -f -`,
		ValidArgsFunction: resource.CompletePools(s),
	}
	cmd.Flags().BoolVar(&v.all, "all", false, "all pools")
	v.output.Add(cmd, []string{"yaml", "json", "jsonpath=", "go-template="})
	*v.output.Flags.OutputFormat = "yaml"
	cmd.Flag("output").DefValue = "yaml"
	return cmd
}

func (v *poolExport) Complete(args []string) error {
	v.names = app.SortedOnce(args)
	return nil
}

func (v *poolExport) Validate() error {
	switch {
	case v.all && len(v.names) > 0:
		return app.Usagef("--all goes without names of pools, such as %s", v.names[0])
	case !v.all && len(v.names) == 0:
		return app.Usagef("name pools to export, or --all")
	}
	return v.output.Validate()
}

func (v *poolExport) Run(ctx context.Context) error {
	found, err := v.find(ctx)
	if err != nil {
		return err
	}
	var items []unstructured.Unstructured
	for _, p := range found {
		if p.DeletionTimestamp != nil && v.all {
			v.Say.Warn("pool %s is being deleted and left out", p.Name)
			continue
		} else if p.DeletionTimestamp != nil {
			v.Say.Warn("pool %s is being deleted", p.Name)
		}
		items = append(items, *backup.Kept(p.Stored))
	}
	if len(items) == 0 {
		v.Say.Note("no pools in %s", v.Where())
		return nil
	}
	if *v.output.Flags.OutputFormat != "yaml" && (v.all || len(v.names) > 1) {
		return v.output.List(v.Out, items)
	}
	for i := range items { // a document each
		if err := v.output.Object(v.Out, &items[i]); err != nil {
			return err
		}
	}
	return nil
}

// find reads the named pools. If one is missing, it returns none.
func (v *poolExport) find(ctx context.Context) ([]resource.Pool, error) {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return nil, err
	}
	if v.all {
		return api.List(ctx)
	}
	return api.Named(ctx, v.names)
}

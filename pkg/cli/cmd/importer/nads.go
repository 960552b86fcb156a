package importer

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer/system"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// nads prints network configurations in which bcsnet gives the addresses.
type nads struct {
	*app.App
	files []string
}

func newNADs(s *app.App) *cobra.Command {
	v := &nads{App: s}
	cmd := &cobra.Command{
		Use: "nads", Aliases: []string{"net-attach-defs"}, Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "Print network configurations that draw from imported pools",
		Long: `Print the NetworkAttachmentDefinitions of the cluster whose ipam is another
plugin's, with ipam of bcsnet that names the network of the pools with the
same ranges. If only the type were changed, pods would get addresses of the
default chain. Nothing is changed: look with kubectl diff, and apply. With
--file it prints network configurations of nodes (conflists) instead.

A configuration whose ranges no pool has, or pools without a network, is left
out and named, with exit code 3.`,
		Example: `  kubectl get net-attach-def -A -o yaml > before.yaml   # the way back
  bcsnetctl import nads | kubectl diff -f -
  bcsnetctl import nads | kubectl apply -f -
  bcsnetctl import nads --file 10-lan.conflist > 10-lan.conflist.new`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringArrayVar(&v.files, "file", nil, "the network configuration at `PATH`; may be repeated")
	return cmd
}

func (v *nads) Complete([]string) error { return nil }

func (v *nads) Validate() error { return nil }

func (v *nads) Run(ctx context.Context) error {
	all, err := resource.AllPools(ctx, v.App)
	if err != nil {
		return err
	}
	var pools []*v1.BCSNetPool
	for _, p := range all {
		pools = append(pools, p.BCSNetPool)
	}
	var left []string
	rewrite := func(name string, config []byte) (out []byte) {
		r, err := system.Rewrite(config, pools)
		switch {
		case err != nil:
			v.Say.Warn("%s: %v", name, err)
			left = append(left, name)
		case len(r.From) > 0:
			v.Say.Done("%s: %s becomes network %s", name, strings.Join(r.From, ", "), strings.Join(r.Networks, ", "))
			return r.Config
		}
		return nil
	}
	if len(v.files) > 0 {
		err = v.printFiles(rewrite)
	} else {
		err = v.printDefinitions(ctx, rewrite)
	}
	if err != nil || len(left) == 0 {
		return err
	}
	f := &app.Failure{Code: app.ExitFindings, Message: fmt.Sprintf("%s left out, %s first",
		humanize.Plural(len(left), "configuration")+humanize.OneOr(len(left), " is", " are"), left[0])}
	return f.WithHint("import the pools, or give them a network: bcsnetctl pool list -o wide")
}

func (v *nads) printFiles(rewrite func(string, []byte) []byte) error {
	for _, path := range v.files {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if out := rewrite(path, text); out != nil {
			if _, err := fmt.Fprintf(v.Out, "%s\n", out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *nads) printDefinitions(ctx context.Context, rewrite func(string, []byte) []byte) error {
	kind := schema.GroupVersionResource{
		Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions",
	}
	items, served, err := listOthers(ctx, v.App, kind)
	if err != nil {
		return err
	}
	if !served {
		return app.Refuse(app.ReasonPoolNotFound, "%v", &system.NotServedError{Kind: kind}).WithHint(
			"see which clusters there are: kubectl config get-contexts")
	}
	for i := range items {
		o := &items[i]
		config, _, _ := unstructured.NestedString(o.Object, "spec", "config")
		if config == "" { // it is in a file of the nodes
			continue
		}
		out := rewrite("NetworkAttachmentDefinition "+resource.KeyOf(o), []byte(config))
		if out == nil {
			continue
		}
		if err := unstructured.SetNestedField(o.Object, string(out), "spec", "config"); err != nil {
			return err
		}
		o.SetManagedFields(nil)
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(v.Out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

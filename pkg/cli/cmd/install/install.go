package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

type install struct {
	*app.App
	cmd       *cobra.Command
	output    printer.Output
	image     string
	node      bool
	nodeImage string
	crdsOnly  bool
	plain     bool
	print     bool
	wait      bool
	yes       bool
	timeout   time.Duration
	// onNodes has the titles of the objects of the node side that will be installed.
	onNodes map[string]bool
	looks
}

// New returns the command install.
func New(s *app.App, examine Examination) *cobra.Command {
	v := &install{App: s, looks: looks{examine: examine}}
	cmd := &cobra.Command{
		Use: "install", GroupID: "other", Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "Install bcsnet into the cluster, or bring it up to date",
		Long: `Install the definitions of the objects (CRDs), the roles and the controller into
the namespace bcsnet-system, after a question. What is there already is upgraded
as by bcsnetctl upgrade, after the same checks; pools and addresses
stay as they are, and so do the controller's image, unless --image names
another, and its number of replicas.

What kubectl or Helm installed is taken over: Helm forgets its release. With
--wait it returns when all replicas of the controller are ready, and with
--node all nodes.

With --node the CNI plugins are installed on all nodes, too, by a DaemonSet.
Pods that begin from then on are in the network of the ConfigMap
bcsnet-conflist. One that is there already stays, and so does the image, unless
--node-image names another. Without --node nothing changes on nodes.

A new controller refuses plain HTTP of other machines, which is all that plugins
of the released system know: --plain-http has it answered, to each machine only
for itself. An existing controller goes on as it does.

--print writes the manifests to standard output and asks no cluster.`,
		Example: `  bcsnetctl install --image registry.example.com/bcsnet-controller:v1
  bcsnetctl install --node --node-image registry.example.com/bcsnet-node:v1
  bcsnetctl install --image registry.example.com/bcsnet-controller:v1 --plain-http
  bcsnetctl install --crds-only --dry-run=server
  bcsnetctl install --print --image bcsnet-controller:dev | kubectl apply -f -`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&v.image, "image", "", "run this `IMAGE` of bcsnet-controller")
	cmd.Flags().BoolVar(&v.node, "node", false, "the CNI plugins on all nodes, too")
	cmd.Flags().StringVar(&v.nodeImage, "node-image", "", "with --node: run this `IMAGE` of bcsnet-node")
	v.addPlainHTTP(cmd)
	cmd.Flags().BoolVar(&v.crdsOnly, "crds-only", false, "only the definitions of the objects")
	cmd.Flags().BoolVar(&v.print, "print", false, "print the manifests as YAML and change nothing")
	cmd.Flags().BoolVar(&v.force, "force", false, "upgrade although doctor finds errors")
	cmd.Flags().BoolVar(&v.wait, "wait", false, "wait until the controller is ready, and with --node the nodes")
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	cmd.Flags().DurationVar(&v.timeout, "timeout", time.Minute,
		"how long to wait for the definitions, and with --wait for controller and nodes each; 0 is for ever")
	app.Complete(cmd, "image")
	app.Complete(cmd, "node-image")
	s.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
	return cmd
}

func (v *install) Validate() error {
	switch {
	case v.crdsOnly && v.image != "":
		return app.Usagef("--crds-only installs no controller: --image does not go with it")
	case v.crdsOnly && v.node:
		return app.Usagef("--crds-only installs nothing but the CRDs: --node cannot be given with it")
	case v.crdsOnly && v.plainAsked():
		return app.Usagef("--crds-only installs no controller: --plain-http does not go with it")
	case v.nodeImage != "" && !v.node:
		return app.Usagef("--node-image goes only with --node: without it nothing is installed on nodes")
	case v.wait && !v.upgrade && (v.crdsOnly || v.print || v.DryRun != app.DryRunNone):
		return app.Usagef("--wait waits for the controller, which neither --crds-only nor --print nor --dry-run starts")
	case v.print && (v.output.Given() || v.DryRun != app.DryRunNone):
		return app.Usagef("--print changes nothing and prints YAML: neither --dry-run nor -o goes with it")
	case v.timeout < 0:
		return app.Usagef("--timeout %s is negative", v.timeout)
	}
	return v.output.Validate()
}

func (v *install) Run(ctx context.Context) error {
	applied, err := v.run(ctx)
	switch {
	case v.output.Printer == nil:
		return err
	case v.upgrade:
		return app.Several{err, v.output.Object(v.Out, v.planObject(err))}.Compact()
	case applied == nil:
		return err
	}
	return app.Several{err, v.output.List(v.Out, applied)}.Compact()
}

// run carries out the installation, and returns the applied objects.
func (v *install) run(ctx context.Context) ([]unstructured.Unstructured, error) {
	if v.print {
		return nil, v.printAll()
	}
	c, err := v.Dynamic()
	if err != nil {
		return nil, err
	}
	if err := v.findNode(ctx, c); err != nil {
		return nil, err
	}
	all, err := v.wanted()
	if err != nil {
		return nil, err
	}
	if all, err = v.withAuthors(ctx, c, all); err != nil {
		return nil, err
	}
	steps, err := v.prepare(ctx, c, all)
	if err != nil {
		return nil, err
	}
	fresh := 0
	for _, s := range steps {
		if s.have == nil {
			fresh++
		}
	}
	v.Say.Start("%s for %s: %d new, %d there already", humanize.Plural(len(steps), "object"), v.Where(), fresh,
		len(steps)-fresh)
	for _, name := range releases(steps) {
		v.Say.Warn("Helm has this as the release %s: it forgets the release, and its values no longer count; to keep "+
			"both, answer no and use helm upgrade", name)
	}
	if err := v.preview(ctx, steps); err != nil {
		return nil, err
	}
	if err := v.Confirm(ctx, v.yes, "Apply them?"); err != nil {
		return nil, err
	}
	return v.carryOut(ctx, c, steps)
}

// wanted returns the manifests with the changes of the flags.
func (v *install) wanted() ([]unstructured.Unstructured, error) {
	folder := "default"
	if v.crdsOnly {
		folder = "crd"
	}
	all, err := resource.Render(folder)
	if err == nil {
		all, err = v.wantNode(all)
	}
	for _, o := range all {
		if o.GetKind() != resource.KindDeployment {
			continue
		}
		if v.image != "" {
			err = errors.Join(err, resource.SetImage(o, v.image))
		}
		err = errors.Join(err, setPlainHTTP(o, v.plain))
	}
	return all, err
}

func (v *install) printAll() error {
	all, err := v.wanted()
	if err != nil {
		return err
	}
	for i, o := range all {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return err
		}
		separator := "---\n"
		if i == 0 {
			separator = ""
		}
		if _, err := fmt.Fprintf(v.Out, "%s%s", separator, text); err != nil {
			return err
		}
	}
	if !v.crdsOnly && v.image == "" {
		v.Say.Warn("the image of the controller is a placeholder; name yours with --image")
	}
	if v.node && v.nodeImage == "" {
		v.Say.Warn("the image of the node side is a placeholder; name yours with --node-image")
	}
	return nil
}

package install

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// NewUpgrade returns the command upgrade, which is install for a cluster that has a controller.
func NewUpgrade(s *app.App, examine Examination) *cobra.Command {
	v := &install{App: s, looks: looks{examine: examine, upgrade: true}}
	cmd := &cobra.Command{
		Use: "upgrade", GroupID: "other", Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "Upgrade bcsnet in the cluster, after checks",
		Long: `Bring the bcsnet that is in the cluster to the release of this program: the
definitions of the objects (CRDs) first, then the roles, then the controller,
one replica after the other, and last the node side, if it is installed.
Pods keep their addresses, and others get theirs meanwhile. The controller's
number of replicas stays; so does whether it answers plain HTTP of other
machines, which a release without HTTPS did: --plain-http=false ends that. Both
images stay, unless others are named.

It looks before it touches: whether the definitions in the cluster are newer,
whether you may do all of it, and what doctor finds. Errors that doctor finds
stop it; --force goes on all the same. See all that would change with
--dry-run=server. What was interrupted is done by running it again.

It waits until all replicas run the new version, and then until all nodes do. A
pod that does not come up is named, with the reason: its image, its place, or
the last line that it wrote.

The node side is the DaemonSet bcsnet-node. The command does not change one that
was made in another way, for other directories or without a conflist, and with
--node=false it changes no node. Its conflist stays in any case.

Definitions never go back: older ones lose fields of newer objects. To go back
to an earlier release, use its program and, if it has it, --keep-crds.

-o prints what was looked at, each step with what it changes and what became of
it, and an error, as one object of the kind Upgrade: with --dry-run the plan.`,
		Example: `  bcsnetctl upgrade --image registry.example.com/bcsnet-controller:v2 --dry-run=server
  bcsnetctl upgrade --image registry.example.com/bcsnet-controller:v2 --node-image registry.example.com/bcsnet-node:v2
  bcsnetctl upgrade --node=false --timeout 10m
  bcsnetctl upgrade --dry-run=server -o jsonpath='{range .steps[?(@.plan=="change")]}{.kind} {.name}{"\n"}{end}'
  bcsnetctl upgrade --plain-http=false
  bcsnetctl upgrade --image registry.example.com/bcsnet-controller:v1 --keep-crds`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&v.image, "image", "", "run this `IMAGE` of bcsnet-controller; the one that runs if empty")
	cmd.Flags().BoolVar(&v.node, "node", true, "the node side, too, if it is installed")
	cmd.Flags().StringVar(&v.nodeImage, "node-image", "", "run this `IMAGE` of bcsnet-node; the one that runs if empty")
	v.addPlainHTTP(cmd)
	cmd.Flags().BoolVar(&v.keepCRDs, "keep-crds", false, "leave the definitions of the objects as they are")
	cmd.Flags().BoolVar(&v.force, "force", false, "go on although doctor finds errors")
	cmd.Flags().BoolVar(&v.wait, "wait", true, "wait until the controller is ready, and then the nodes")
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	cmd.Flags().DurationVar(&v.timeout, "timeout", 5*time.Minute,
		"how long to wait for each of definitions, controller and nodes; 0 is for ever")
	app.Complete(cmd, "image")
	app.Complete(cmd, "node-image")
	s.DryRun.AddTo(cmd)
	v.output.AddToView(cmd)
	return cmd
}

// nothingToUpgrade returns the error for a cluster without a controller.
func nothingToUpgrade(s *app.App) error {
	return (&app.Failure{
		Message: "there is no Deployment " + resource.SystemNamespace + "/" + resource.ControllerName + " in " +
			s.Where() +
			": nothing to upgrade",
	}).WithHint("to install bcsnet: bcsnetctl install --image REGISTRY/bcsnet-controller:TAG")
}

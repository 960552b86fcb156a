package check

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

type nodesVerb struct {
	*app.App
	output      printer.Output
	in          resource.InNamespace
	which       resource.Selectors
	pool, image string
	timeout     time.Duration
	names       []string
	// id is unique to the run; random chooses the peers.
	id     string
	random *rand.Rand
}

func newNodes(s *app.App) *cobra.Command {
	v := &nodesVerb{App: s}
	cmd := &cobra.Command{
		Use: "nodes [NODE...]", RunE: app.Runs(v),
		Short: "Have a pod on each node get an address, and use it",
		Long: `Have a pod on every node, or on those that are named, get an address and use it:
each reaches the others and the gateway, nobody else answers for its address,
and the address comes back with the end of the pod. After an installation, a
change of switches, or with a new rack.

The pods go to their nodes without the scheduler, also to cordoned and tainted
ones, and each takes an address meanwhile. Up to 33 nodes each pod asks all
others, else 8: the next 4 and 4 at random. READY IN is the time until the pod
runs with its address.

Nothing is left behind, also after Ctrl-C. What a run that was killed left ends
by itself a few minutes after --timeout, and the next run removes it.

Its user may create, get, list, patch and delete pods in the namespace. The
search for duplicates needs NET_RAW there; if Pod Security refuses that, it says
so and does the rest. Exit code 3 says that there are findings.`,
		Example: `  bcsnetctl check nodes
  bcsnetctl check nodes node-7 node-8 --pool blue
  bcsnetctl check nodes -l rack=r7 -n shop -o json`,
		ValidArgsFunction: resource.CompleteNodesUnnamed(s),
	}
	f := cmd.Flags()
	v.in.AddTo(s, cmd, "make the pods in this `NAMESPACE`, whose pools they draw from")
	v.which.AddLabels(cmd, "nodes")
	f.StringVar(&v.pool, "pool", "", "draw from this `POOL`")
	f.StringVar(&v.image, "image", "",
		"an `IMAGE` with /bcsnet-podcheck; default: the image of the DaemonSet bcsnet-node")
	f.DurationVar(&v.timeout, "timeout", time.Minute, "how long a pod may take until it runs with an address")
	s.DryRun.AddTo(cmd)
	v.output.AddToViews(cmd)
	app.CompleteWith(cmd, "pool", resource.CompletePools(s))
	return cmd
}

// Bounds of --timeout.
const minTimeout, maxTimeout = 5 * time.Second, time.Hour

func (v *nodesVerb) Complete(args []string) error {
	v.names = app.SortedOnce(args)
	v.id = utilrand.String(5)
	v.random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	return v.in.Complete(v.App)
}

func (v *nodesVerb) Validate() error {
	switch {
	case v.timeout < minTimeout || v.timeout > maxTimeout:
		return app.Usagef("--timeout %s is not from %s to %s", v.timeout, minTimeout, maxTimeout)
	case len(v.names) > 0 && v.which.Labels != "":
		return app.Usagef("nodes are named, or selected by --selector, not both")
	}
	return cmp.Or(v.which.Validate(), v.output.Validate())
}

func (v *nodesVerb) Run(ctx context.Context) error {
	r, err := v.prepare(ctx)
	if err != nil {
		return err
	}
	if v.DryRun != app.DryRunNone {
		v.announce(r)
		return nil
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	nodes := r.results()
	findings := nodecheck.Judge(nodes)
	if err := v.print(nodes, findings); err != nil {
		return err
	}
	return v.sumUp(nodes, findings)
}

// prepare reads what the check needs. If the check cannot work, it fails before any pod exists.
func (v *nodesVerb) prepare(ctx context.Context) (*run, error) {
	core, err := resource.CoreClient(v.App)
	if err != nil {
		return nil, err
	}
	r := &run{nodesVerb: v, core: core}
	for _, step := range []func(context.Context) error{
		r.chooseNodes, r.choosePool, r.checkRights, r.chooseImage, r.removeEarlier, r.rehearse,
	} {
		if err := step(ctx); err != nil {
			return nil, resource.Explain(v.App, err)
		}
	}
	return r, nil
}

func (v *nodesVerb) announce(r *run) {
	for _, t := range r.targets {
		if t.Failure != nil {
			v.Say.Warn("node %s: no pod: %s", t.Name, t.Failure.Cause)
		}
	}
	v.Say.Done("%s made in namespace %s, of image %s", humanize.Plural(len(r.running()), "pod"), v.in.Name, r.image)
}

// sumUp returns the number of findings as an error, or prints that there are none.
func (v *nodesVerb) sumUp(nodes []nodecheck.Node, findings []nodecheck.Finding) error {
	if why := nodecheck.Unasked(nodes); why != "" {
		v.Say.Warn("nobody was asked for duplicates on some nodes: %s", why)
	}
	text := humanize.Plural(len(nodes), "node") + ": "
	if len(findings) > 0 {
		return &app.Failure{Message: text + humanize.Plural(len(findings), "finding"), Code: app.ExitFindings}
	}
	v.Say.Done("%sno findings", text)
	return nil
}

func wasInterrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled)
}

// New returns the command check.
func New(s *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", GroupID: "other",
		Short: "Try out whether nodes give pods working addresses",
		Long: `Try out, with pods that are deleted at the end, whether nodes give pods working
addresses. To look for what is wrong without any pod: bcsnetctl doctor.`,
		Example: `  bcsnetctl check nodes`,
	}
	cmd.AddCommand(newNodes(s))
	return cmd
}

package inspect

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type explainPod struct {
	*app.App
	output    printer.Output
	in        resource.InNamespace
	arg, node string
}

// NewExplain returns the command explain.
func NewExplain(s *app.App) *cobra.Command {
	v := &explainPod{App: s}
	cmd := &cobra.Command{
		Use: "explain POD", GroupID: "objects", Args: onePod, RunE: app.Runs(v),
		Short: "Say why a pod has its address, or why it gets none",
		Long: `Say why a pod has the address that it has; of a pod without one, which address
it would get now, or why it gets none. That is decided here as the controller
decides it, from the objects as they are; nothing is changed.

A pod on no node yet has no pools: --node says what it would get there. Of a pod
with several interfaces it says for each which annotations bind it, and why
others do not: of the first, of those with an address, and of those whose
NetworkAttachmentDefinition names bcsnet-ipam. The exit code is 3 when the pod
has no address, or lacks one of an interface, and gets none as things are.`,
		Example: `  bcsnetctl explain db-0 -n shop
  bcsnetctl explain shop/db-0 --node node-1 -o yaml
  bcsnetctl explain namespace shop`,
		ValidArgsFunction: resource.CompletePods(s, &v.in),
	}
	cmd.Flags().StringVar(&v.node, "node", "", "as if the pod were on this `NODE`")
	app.CompleteWith(cmd, "node", resource.CompleteNodes(s))
	v.in.AddTo(s, cmd, "the `NAMESPACE` of the pod")
	v.output.AddToView(cmd)
	cmd.AddCommand(newExplainNamespace(s))
	return cmd
}

func (v *explainPod) Complete(args []string) error {
	v.arg = podArg(args)[0]
	return v.in.Complete(v.App)
}

func (v *explainPod) Validate() error { return v.output.Validate() }

func (v *explainPod) Run(ctx context.Context) error {
	key, err := v.in.Key(v.arg)
	if err != nil {
		return err
	}
	t, err := lineageOf(ctx, v.App, key, nil)
	if err != nil {
		return err
	}
	e := &explanation{lineage: t}
	if err := v.answer(ctx, e); err != nil {
		return err
	}
	if v.output.Printer != nil {
		err = v.output.Object(v.Out, e.object())
	} else {
		err = v.writeExplanation(e)
	}
	lacks := slices.ContainsFunc(e.interfaces, func(i *interfaceTerms) bool { return i.none != nil })
	if err == nil && (len(e.addresses) == 0 || lacks) {
		err = &app.Failure{Code: app.ExitFindings} // the output has said why
	}
	return err
}

// explanation adds to a lineage the addresses that the pod has or would get, or why it gets none.
type explanation struct {
	*lineage
	// addresses are those that the pod has, or that it would get now.
	addresses []lease.Lease
	has       bool
	// keeps are those of the addresses that are kept for it until it gets them.
	keeps map[netip.Addr]bool
	// none is why there is no address.
	none *ipam.Refusal
	host netip.Addr
	// labels are those of the pod's namespace, as far as they can be read.
	labels map[string]string
}

// answer fills in the addresses that the pod has or would get, or why it gets none.
func (v *explainPod) answer(ctx context.Context, e *explanation) error {
	if e.pod == nil {
		e.none = ipam.Refuse(ipam.ReasonPodNotFound, "the pod is gone").
			WithHint("see what is kept for it: bcsnetctl trace %s", e.key)
		return nil
	}
	e.labels, _ = resource.LabelsOfNamespace(ctx, v.App, e.key.Namespace) // a reason says nothing of it otherwise
	for _, l := range e.leases {
		if l.State == lease.Active {
			e.addresses, e.has = append(e.addresses, l), true
		}
	}
	if e.has {
		e.host = e.addresses[0].Host
	} else if err := v.findHost(ctx, e); err != nil {
		return err
	}
	switch {
	case e.has:
	case e.pod.HostNetwork:
		e.none = ipam.Refuse("", "it uses the network of its host")
	case e.pod.Ended:
		e.none = ipam.Refuse(ipam.ReasonPodEnded, "the pod has ended")
	case errors.As(e.wrong, &e.none):
		if e.none.Reason == ipam.ReasonWorkloadUnknown {
			e.none.Hint = app.HintRights
		}
	case !e.host.IsValid():
		e.none = ipam.Refuse("", "it is on no node yet, and which pools serve it depends on that").
			WithHint("see what it would get on one: bcsnetctl explain %s --node NODE", e.key)
	default:
		return v.propose(ctx, e)
	}
	return nil
}

// findHost finds the host that asks for the pod's addresses.
func (v *explainPod) findHost(ctx context.Context, e *explanation) error {
	name := e.pod.Node
	switch {
	case v.node != "":
		name = v.node
	case len(e.pod.HostIPs) > 0:
		e.host = e.pod.HostIPs[0]
		return nil
	case name == "":
		return nil
	}
	n, err := resource.GetNode(ctx, v.App, name)
	if err == nil && len(n.Addrs) > 0 {
		e.host = n.Addrs[0]
	}
	return err
}

package inspect

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
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
	e, err := view.Explain(ctx, v.App, key, v.node)
	if err != nil {
		return err
	}
	if v.output.Printer != nil {
		err = v.output.Object(v.Out, e.Object())
	} else {
		err = v.write(e)
	}
	if err == nil && e.Lacks() {
		err = &app.Failure{Code: app.ExitFindings} // the output has said why
	}
	return err
}

// write prints the facts that decide on a pod's addresses, and the result.
func (v *explainPod) write(e *view.Explanation) error {
	var b bytes.Buffer
	facts, next := e.Facts(v.App)
	facts.Write(&b, v.App, 12)
	next.Write(&b, v.App)
	_, err := v.Out.Write(b.Bytes())
	return err
}

// podArg turns pod NAME and pod/NAME at the beginning of the arguments into NAME.
func podArg(args []string) []string {
	if len(args) > 1 && resource.IsPodWord(args[0]) {
		return args[1:]
	}
	if len(args) == 0 {
		return args
	}
	return append([]string{resource.PodWord(args[0])}, args[1:]...)
}

// onePod refuses arguments other than one pod.
func onePod(cmd *cobra.Command, args []string) error { return app.Takes(1, 1)(cmd, podArg(args)) }

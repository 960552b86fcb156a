package inspect

import (
	"bytes"
	"cmp"
	"context"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// explainNamespace runs explain namespace.
type explainNamespace struct {
	*app.App
	output     printer.Output
	name, node string
}

func newExplainNamespace(s *app.App) *cobra.Command {
	v := &explainNamespace{App: s}
	cmd := &cobra.Command{
		Use: "namespace NAMESPACE", Aliases: []string{"ns"}, Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Show from which pools a namespace draws, and why from no others",
		Long: `Show from which pools the pods of a namespace draw if they name none, in the
order in which these are tried, and why other pools are passed over. A namespace
with its own pools draws only from these; any other draws from the default
chain. A block of a pool with autoAssign counts only on the hosts of that pool;
on other hosts the namespace stays in the default chain. The command decides as
the controller does, from the objects as they are.

With --node it shows this for pods there. The exit code is 3 if there is no pool
for the namespace.`,
		Example: "  bcsnetctl explain namespace payments\n  bcsnetctl explain namespace payments --node node-1 " +
			"-o json",
		ValidArgsFunction: app.First(resource.CompleteNamespaces(s)),
	}
	cmd.Flags().StringVar(&v.node, "node", "", "as for pods on this `NODE`")
	app.CompleteWith(cmd, "node", resource.CompleteNodes(s))
	v.output.AddToView(cmd)
	return cmd
}

func (v *explainNamespace) Complete(args []string) error {
	v.name = args[0]
	return nil
}

func (v *explainNamespace) Validate() error {
	return cmp.Or(resource.CheckNamespace(v.name), v.output.Validate())
}

func (v *explainNamespace) Run(ctx context.Context) error {
	c, err := view.ChainOf(ctx, v.App, v.name, v.node)
	if err != nil {
		return err
	}
	if v.output.Printer != nil {
		err = v.output.Object(v.Out, chainObject(c))
	} else {
		err = v.write(c)
	}
	if err == nil && len(c.Tried) == 0 {
		err = &app.Failure{Code: app.ExitFindings} // the output has said why
	}
	return err
}

func (v *explainNamespace) write(c *view.Chain) error {
	var b bytes.Buffer
	line := func(label, text string) { printer.Line(&b, 11, label+":", text) }
	line("Namespace", v.name)
	if c.Exists {
		line("Labels", printer.OrNone(labels.FormatLabels(c.Labels)))
	}
	if c.Host.IsValid() {
		line("Host", c.HostText())
	}
	line("Draws from", c.Source())
	order := map[string]string{}
	for i, p := range c.Tried {
		order[p.Pool] = strconv.Itoa(i + 1)
	}
	columns := []printer.Column[ipam.Place]{
		{Name: "POOL", Cell: func(p ipam.Place) string { return p.Pool }},
		{Name: "PRIORITY", Cell: func(p ipam.Place) string { return strconv.Itoa(int(c.Pools[p.Pool].Spec.Priority)) }},
		{Name: "FREE", Cell: func(p ipam.Place) string { return c.Count(p, c.Pools[p.Pool].Status.Available) }},
		{Name: "TOTAL", Cell: func(p ipam.Place) string { return c.Count(p, c.Pools[p.Pool].Status.Capacity) }},
		{Name: "WHY", Cell: c.Why},
	}
	if len(c.Tried) > 0 {
		first := printer.Column[ipam.Place]{Name: "ORDER", Cell: func(p ipam.Place) string { return order[p.Pool] }}
		if err := printer.Indented(&b, "Tried", printer.Table[ipam.Place]{
			Headers: true, Columns: append([]printer.Column[ipam.Place]{first}, columns...),
		}, c.Tried); err != nil {
			return err
		}
	}
	if len(c.Passed) > 0 {
		if err := printer.Indented(&b, "Passed over", printer.Table[ipam.Place]{Headers: true, Columns: columns},
			c.Passed); err != nil {
			return err
		}
	}
	c.Next().Write(&b, v.App)
	_, err := v.Out.Write(b.Bytes())
	return err
}

// chainObject returns the chain for -o json and similar formats.
func chainObject(c *view.Chain) *unstructured.Unstructured {
	places := func(all []ipam.Place) []any {
		out := []any{}
		for _, p := range all {
			s := c.Pools[p.Pool].Status
			out = append(out, map[string]any{
				"pool": p.Pool, "standing": string(p.Standing), "why": c.Why(p),
				"handsOut": p.Stop.Cause == explain.Serves,
				"priority": int64(c.Pools[p.Pool].Spec.Priority), "free": s.Available, "total": s.Capacity,
			})
		}
		return out
	}
	of := map[string]any{}
	for k, value := range c.Labels {
		of[k] = value
	}
	return printer.NewView("NamespaceChain", map[string]any{
		"namespace": c.Name, "labels": of, "exists": c.Exists, "host": resource.AddrText(c.Host),
		"own": resource.Values(c.Own), "tried": places(c.Tried), "passedOver": places(c.Passed),
	})
}

package inspect

import (
	"bytes"
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/explain"
)

// explainNamespace is one call of explain namespace.
type explainNamespace struct {
	*app.App
	output     printer.Output
	name, node string
	// labels of the namespace; exists is false where there is none of that name.
	labels map[string]string
	exists bool
	// addrs are those of the node, host the one by which it draws.
	addrs []netip.Addr
	host  netip.Addr
	// pools are as they are stored, served as they serve: a group may have the namespaces of its parent.
	pools  map[string]resource.Pool
	served map[string]ipam.Pool
}

func newExplainNamespace(s *app.App) *cobra.Command {
	v := &explainNamespace{App: s}
	cmd := &cobra.Command{
		Use: "namespace NAMESPACE", Aliases: []string{"ns"}, Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Show from which pools a namespace draws, and why from no others",
		Long: `Show from which pools the pods of a namespace draw that name none, in the order
in which these are tried, and of the other pools why they are passed over. A
namespace with pools of its own draws from these alone; any other draws from the
default chain. What a pool with autoAssign gives it is its own on the hosts of
that pool; on others it stays in the default chain. That is decided here as the
controller decides it, from the objects as they are.

With --node it is what holds for pods there. The exit code is 3 when there is no
pool for the namespace.`,
		Example: "  bcsnetctl explain namespace payments\n  bcsnetctl explain namespace payments --node node-1 " +
			"-o json",
		ValidArgsFunction: first(resource.CompleteNamespaces(s)),
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
	if err := checkNamespace(v.name); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *explainNamespace) Run(ctx context.Context) error {
	all, err := resource.AllPools(ctx, v.App)
	if err != nil {
		return err
	}
	v.pools = map[string]resource.Pool{}
	for _, p := range all {
		v.pools[p.Name] = p
	}
	if err := v.readNamespace(ctx); err != nil {
		return err
	}
	if v.node != "" {
		n, err := resource.GetNode(ctx, v.App, v.node)
		switch {
		case err != nil:
			return err
		case len(n.Addrs) == 0:
			return app.Refuse(app.ReasonNodeNotFound, "node %s has no address by which it could draw", v.node)
		}
		v.addrs = n.Addrs
	}
	x := resource.IndexOf(v.App, all)
	x.Pools.SetNamespace(v.name, v.labels)
	v.served = map[string]ipam.Pool{}
	for _, p := range x.Pools.All() {
		v.served[p.Name] = p
	}
	resource.SetNodes(ctx, v.App, x, all)
	v.chooseHost(x)
	c := chain{own: x.Pools.Own(v.name, v.host)}
	for _, p := range x.Pools.Chain(v.name, v.host) {
		if p.Tried {
			c.tried = append(c.tried, p)
		} else {
			c.passed = append(c.passed, p)
		}
	}
	if v.output.Printer != nil {
		err = v.output.Object(v.Out, v.object(c))
	} else {
		err = v.write(c)
	}
	if err == nil && len(c.tried) == 0 {
		err = &app.Failure{Code: app.ExitFindings} // the output has said why
	}
	return err
}

// chooseHost takes the address of the node by which the namespace draws: the first for which there is a pool, as
// pools know the node by that one, or else the first of all.
func (v *explainNamespace) chooseHost(x *ipam.Index) {
	for i, a := range v.addrs {
		draws := slices.ContainsFunc(x.Pools.Chain(v.name, a), func(p ipam.Place) bool { return p.Tried })
		if i == 0 || draws {
			v.host = a
		}
		if draws {
			return
		}
	}
}

// hostText writes the address of the node, and which others it has, by which it does not draw.
func (v *explainNamespace) hostText() string {
	text := v.host.String()
	others := slices.DeleteFunc(slices.Clone(v.addrs), func(a netip.Addr) bool { return a == v.host })
	if len(others) > 0 {
		text += " (the node also has " + resource.JoinAddrs(others) + ")"
	}
	return text
}

// readNamespace reads the labels of the namespace. One that does not exist has none.
func (v *explainNamespace) readNamespace(ctx context.Context) error {
	of, err := resource.LabelsOfNamespace(ctx, v.App, v.name)
	switch {
	case err == nil:
		v.labels, v.exists = of, true
	case apierrors.IsNotFound(err):
		v.Say.Warn("there is no namespace %s: this is what one without labels would draw from", v.name)
		v.Hint("see the namespaces: kubectl get namespaces")
	default:
		return resource.Explain(v.App, err)
	}
	return nil
}

// chain is what a namespace draws from, and what it does not.
type chain struct {
	own           []string
	tried, passed []ipam.Place
}

// source says where the chain of the namespace is from.
func (v *explainNamespace) source(c chain) string {
	switch {
	case len(c.own) > 0 && len(c.tried) == 0:
		return "nothing: its own pools are not for " + v.where()
	case slices.ContainsFunc(c.tried, func(p ipam.Place) bool { return p.Standing == ipam.BesideItsOwn }):
		return "its own blocks on the hosts of " + app.Those("pool", c.own) + ", the default chain on others"
	case len(c.own) > 0:
		return "its own alone, in this order"
	case len(c.tried) == 0:
		return "nothing: no pool is for it on " + v.where()
	case v.host.IsValid():
		return "the default chain, in this order, as it has nothing of its own for this host"
	default:
		return "the default chain, in this order, as it has nothing of its own"
	}
}

func (v *explainNamespace) where() string {
	if v.host.IsValid() {
		return "host " + v.host.String()
	}
	return "any host"
}

func (v *explainNamespace) write(c chain) error {
	var b bytes.Buffer
	line := func(label, text string) { printer.Line(&b, 11, label+":", text) }
	line("Namespace", v.name)
	if v.exists {
		line("Labels", printer.OrNone(labels.FormatLabels(v.labels)))
	}
	if v.host.IsValid() {
		line("Host", v.hostText())
	}
	line("Draws from", v.source(c))
	order := map[string]string{}
	for i, p := range c.tried {
		order[p.Pool] = strconv.Itoa(i + 1)
	}
	columns := []printer.Column[ipam.Place]{
		{Name: "POOL", Cell: func(p ipam.Place) string { return p.Pool }},
		{Name: "PRIORITY", Cell: func(p ipam.Place) string { return strconv.Itoa(int(v.pools[p.Pool].Spec.Priority)) }},
		{Name: "FREE", Cell: func(p ipam.Place) string { return v.count(p, v.pools[p.Pool].Status.Available) }},
		{Name: "TOTAL", Cell: func(p ipam.Place) string { return v.count(p, v.pools[p.Pool].Status.Capacity) }},
		{Name: "WHY", Cell: v.why},
	}
	if len(c.tried) > 0 {
		first := printer.Column[ipam.Place]{Name: "ORDER", Cell: func(p ipam.Place) string { return order[p.Pool] }}
		if err := printer.Indented(&b, "Tried", printer.Table[ipam.Place]{
			Headers: true, Columns: append([]printer.Column[ipam.Place]{first}, columns...),
		}, c.tried); err != nil {
			return err
		}
	}
	if len(c.passed) > 0 {
		if err := printer.Indented(&b, "Passed over", printer.Table[ipam.Place]{Headers: true, Columns: columns},
			c.passed); err != nil {
			return err
		}
	}
	v.next(&b, c)
	_, err := v.Out.Write(b.Bytes())
	return err
}

// count writes a number of a pool's status; nothing of a pool that no controller has counted.
func (v *explainNamespace) count(p ipam.Place, n int64) string {
	if !resource.Counted(v.pools[p.Pool].BCSNetPool) {
		return ""
	}
	return app.Count(n)
}

// next prints what to do where the namespace gets nothing.
func (v *explainNamespace) next(b *bytes.Buffer, c chain) {
	if len(c.tried) > 0 {
		return
	}
	printer.Section(b, "Next", []string{
		"  bind a pool to it: " + v.Called("bcsnetctl pool bind POOL --namespace "+v.name+" --dry-run=server"),
		"  let hosts draw from one: " + v.Called("bcsnetctl pool add-host POOL HOST"),
	})
}

// why says in words where a pool stands, and what keeps it from handing out addresses.
func (v *explainNamespace) why(p ipam.Place) string {
	o := v.pools[p.Pool]
	text := v.standing(p, o)
	switch s := o.Status; {
	case p.Stop.Cause != explain.Serves:
		text += "; it hands out nothing: it is " + p.Stop.Why()
	case p.Tried && resource.Counted(o.BCSNetPool) && s.Available == 0:
		text += "; it is full"
	}
	return text
}

func (v *explainNamespace) standing(p ipam.Place, o resource.Pool) string {
	served := v.served[p.Pool]
	names, selector, from := o.Spec.Namespaces, "", ""
	if served.NamespaceSelector != nil {
		selector = served.NamespaceSelector.String()
	}
	if len(names) == 0 && o.Spec.NamespaceSelector == nil {
		names, from = slices.Sorted(maps.Keys(served.Namespaces)), " (as pool "+o.Spec.Parent+")"
	}
	switch p.Standing {
	case ipam.BoundByName:
		return "bound to it by name" + from
	case ipam.BoundByLabels:
		return "bound to it by its selector " + selector + from
	case ipam.InDefaultChain:
		return "in the default chain"
	case ipam.BesideItsOwn:
		return "in the default chain, on hosts for which the namespace has nothing of its own"
	case ipam.OwnBlock:
		return "its block of pool " + o.Spec.Parent
	case ipam.SplitIntoBlocks:
		return "split into blocks: it draws from its own of them"
	case ipam.GivesNoBlock:
		return "split into blocks: it gives none by itself, and the namespace has none"
	case ipam.BehindItsOwn:
		return "in the default chain, and the namespace has pools of its own"
	case ipam.OnlyByName:
		return "serves only who names it (default: false)"
	case ipam.NotOnHost:
		if !v.host.IsValid() {
			return "no host may draw from it"
		}
		return "host " + v.host.String() + " may not draw from it"
	default: // BoundElsewhere
		var to []string
		if len(names) > 0 {
			to = append(to, "to "+app.Those("namespace", names))
		}
		if selector != "" {
			to = append(to, "by its selector "+selector)
		}
		return "bound " + strings.Join(to, " and ") + from
	}
}

// object returns the chain for -o json and the like.
func (v *explainNamespace) object(c chain) *unstructured.Unstructured {
	places := func(all []ipam.Place) []any {
		out := []any{}
		for _, p := range all {
			s := v.pools[p.Pool].Status
			out = append(out, map[string]any{
				"pool": p.Pool, "standing": string(p.Standing), "why": v.why(p), "handsOut": p.Stop.Cause == explain.Serves,
				"priority": int64(v.pools[p.Pool].Spec.Priority), "free": s.Available, "total": s.Capacity,
			})
		}
		return out
	}
	of := map[string]any{}
	for k, value := range v.labels {
		of[k] = value
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": app.ProgramName + "/v1", "kind": "NamespaceChain",
		"namespace": v.name, "labels": of, "exists": v.exists, "host": resource.AddrText(v.host),
		"own": resource.Values(c.own), "tried": places(c.tried), "passedOver": places(c.passed),
	}}
}

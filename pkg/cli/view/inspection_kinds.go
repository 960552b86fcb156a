package view

import (
	"context"
	"slices"

	"go4.org/netipx"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Pool chooses one pool.
func (v *Inspection) Pool(ctx context.Context) error {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(v.all, func(p resource.Pool) bool { return p.Name == v.Name }) {
		_, err := api.Get(ctx, v.Name)
		if err == nil {
			err = app.Refuse(app.ReasonPoolNotFound, "pool %s is new", v.Name).WithHint("run it again")
		}
		return err
	}
	v.Chosen = []string{v.Name}
	return nil
}

// Among returns a function that chooses the pools whose subnets overlap a set; all pools if set is nil.
func Among(set *netipx.IPSet) func(*Inspection, context.Context) error {
	return func(v *Inspection, _ context.Context) error {
		for _, p := range resource.WithoutBlocks(v.all) {
			known, _ := v.index.Pools.Get(p.Name)
			if set == nil || known.Plan.Subnet.IsValid() && set.OverlapsPrefix(known.Plan.Subnet) {
				v.Chosen = append(v.Chosen, p.Name)
			}
		}
		return nil
	}
}

// Group chooses a group.
func (v *Inspection) Group(ctx context.Context) error {
	if err := resource.CheckGroup(v.all, v.Name); err != nil {
		return err
	}
	if err := v.Pool(ctx); err != nil {
		return err
	}
	p, _ := v.index.Pools.Get(v.Name)
	v.Head = Facts{{Label: "Group", Text: v.Name}, {Label: "Parent", Text: p.Parent}}
	return nil
}

// Network chooses the pools of a network and their groups.
func (v *Inspection) Network(_ context.Context) error {
	in, err := resource.InNetwork(v.all, v.Name)
	for _, p := range resource.WithGroups(v.all, in) {
		v.Chosen = append(v.Chosen, p.Name)
	}
	v.Head = Facts{{Label: "Network", Text: v.Name}, {Label: "Pools", Text: v.pools()}}
	return err
}

// Host chooses the pools that may serve a host, given by its IP or node.
func (v *Inspection) Host(ctx context.Context) error {
	h, err := resource.FindHost(ctx, v.App, v.Name)
	if err != nil {
		return err
	}
	v.Head = Facts{{Label: "Host", Text: resource.JoinAddrs(h.Addrs)}}
	if h.Node != nil {
		v.Head.add("Node", "%s", h.Node.Name+", "+h.Node.State)
	}
	for _, p := range v.all {
		if resource.Serves(p, h.Addrs, h.Nodes) {
			v.Chosen = append(v.Chosen, p.Name)
		}
	}
	v.whole = true
	v.Mine = func(l lease.Lease) bool {
		_, has := l.From(func(l lease.Lease) bool {
			return l.State == lease.Active && slices.Contains(h.Addrs,
				l.Host)
		})
		return has
	}
	v.Head.add("Pools", "%s", v.pools())
	return nil
}

// pools names the chosen pools.
func (v *Inspection) pools() string {
	return printer.OrNone(humanize.List(v.Chosen))
}

// Namespace chooses the pools from which pods of a namespace draw if they name none. It warns of a missing namespace if
// the user may read namespaces.
func (v *Inspection) Namespace(ctx context.Context) error {
	labels, err := resource.LabelsOfNamespace(ctx, v.App, v.Name)
	v.Head = Facts{{Label: "Namespace", Text: v.Name}}
	switch {
	case err == nil:
		v.index.Pools.SetNamespace(v.Name, labels)
	case apierrors.IsNotFound(err):
		v.Head[0].Text += ", which does not exist"
		v.Say.Warn("there is no namespace %s: see what its pods had and its claims keep", v.Name)
		v.Hint("see the namespaces: kubectl get namespaces")
	case !apierrors.IsForbidden(err):
		return resource.Explain(v.App, err)
	}
	resource.SetNodes(ctx, v.App, v.index, v.all)
	v.Chosen = v.index.Pools.PoolsFor(v.Name)
	v.Mine = func(l lease.Lease) bool { return slices.Contains(l.ChargedTo(), v.Name) }
	v.Head.add("Pools", "%s", v.pools())
	return nil
}

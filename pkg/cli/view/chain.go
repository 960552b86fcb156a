package view

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
)

// Chain lists the pools from which a namespace draws, and the others.
type Chain struct {
	Name string
	// Labels are the namespace's. Exists is false if there is no such namespace.
	Labels map[string]string
	Exists bool
	// addrs are the IPs of the node. Host is the one by which its pods draw; invalid without a node.
	addrs []netip.Addr
	Host  netip.Addr
	// Pools are as stored, served as they serve: a group may inherit the namespaces of its parent.
	Pools  map[string]resource.Pool
	served map[string]ipam.Pool
	// Own names the pools of the namespace. Tried are the places from which its pods draw, Passed the others.
	Own           []string
	Tried, Passed []ipam.Place
}

// ChainOf reads the chain of a namespace; of its pods on a node if that is named.
func ChainOf(ctx context.Context, s *app.App, name, node string) (*Chain, error) {
	all, err := resource.AllPools(ctx, s)
	if err != nil {
		return nil, err
	}
	v := &Chain{Name: name, Pools: map[string]resource.Pool{}, served: map[string]ipam.Pool{}}
	for _, p := range all {
		v.Pools[p.Name] = p
	}
	if err := v.readNamespace(ctx, s); err != nil {
		return nil, err
	}
	if node != "" {
		n, err := resource.GetNode(ctx, s, node)
		switch {
		case err != nil:
			return nil, err
		case len(n.Addrs) == 0:
			return nil, app.Refuse(app.ReasonNodeNotFound, "node %s has no address by which it could draw", node)
		}
		v.addrs = n.Addrs
	}
	x := resource.IndexOf(s, all)
	x.Pools.SetNamespace(name, v.Labels)
	for _, p := range x.Pools.All() {
		v.served[p.Name] = p
	}
	resource.SetNodes(ctx, s, x, all)
	v.chooseHost(x)
	v.Own = x.Pools.Own(name, v.Host)
	for _, p := range x.Pools.Chain(name, v.Host) {
		if p.Tried {
			v.Tried = append(v.Tried, p)
		} else {
			v.Passed = append(v.Passed, p)
		}
	}
	return v, nil
}

// chooseHost chooses the IP of the node by which its pods draw: the first one that a pool admits, else the first.
func (v *Chain) chooseHost(x *index.Index) {
	for i, a := range v.addrs {
		draws := slices.ContainsFunc(x.Pools.Chain(v.Name, a), func(p ipam.Place) bool { return p.Tried })
		if i == 0 || draws {
			v.Host = a
		}
		if draws {
			return
		}
	}
}

// HostText formats the IP by which pods draw, and the node's other IPs.
func (v *Chain) HostText() string {
	text := v.Host.String()
	others := slices.DeleteFunc(slices.Clone(v.addrs), func(a netip.Addr) bool { return a == v.Host })
	if len(others) > 0 {
		text += " (the node also has " + resource.JoinAddrs(others) + ")"
	}
	return text
}

// readNamespace reads the labels of the namespace. A missing one counts as one without labels.
func (v *Chain) readNamespace(ctx context.Context, s *app.App) error {
	of, err := resource.LabelsOfNamespace(ctx, s, v.Name)
	switch {
	case err == nil:
		v.Labels, v.Exists = of, true
	case apierrors.IsNotFound(err):
		s.Say.Warn("there is no namespace %s: this is what one without labels would draw from", v.Name)
		s.Hint("see the namespaces: kubectl get namespaces")
	default:
		return resource.Explain(s, err)
	}
	return nil
}

// Source describes the origin of the chain.
func (v *Chain) Source() string {
	switch {
	case len(v.Own) > 0 && len(v.Tried) == 0:
		return "nothing: its own pools are not for " + v.where()
	case slices.ContainsFunc(v.Tried, func(p ipam.Place) bool { return p.Standing == ipam.BesideItsOwn }):
		return "its own blocks on the hosts of " + app.Those("pool", v.Own) + ", the default chain on others"
	case len(v.Own) > 0:
		return "only its own pools, in this order"
	case len(v.Tried) == 0:
		return "nothing: no pool is for it on " + v.where()
	case v.Host.IsValid():
		return "the default chain, in this order: it has no pool of its own for this host"
	default:
		return "the default chain, in this order: it has no pools of its own"
	}
}

func (v *Chain) where() string {
	if v.Host.IsValid() {
		return "host " + v.Host.String()
	}
	return "any host"
}

// Count formats a number of a pool's status; empty if no controller has counted.
func (v *Chain) Count(p ipam.Place, n int64) string {
	if !resource.Counted(v.Pools[p.Pool].BCSNetPool) {
		return ""
	}
	return app.Count(n)
}

// Next returns the next steps if the namespace gets no address.
func (v *Chain) Next() (n Steps) {
	if len(v.Tried) == 0 {
		n.add("bind a pool to it", "bcsnetctl pool bind POOL --namespace "+v.Name+" --dry-run=server")
		n.add("let hosts draw from one", "bcsnetctl pool add-host POOL HOST")
	}
	return n
}

// Why describes the place of a pool in the chain, and why it allocates nothing.
func (v *Chain) Why(p ipam.Place) string {
	o := v.Pools[p.Pool]
	text := v.standing(p, o)
	switch s := o.Status; {
	case p.Stop.Cause != explain.Serves:
		text += "; it allocates nothing: it is " + p.Stop.Why()
	case p.Tried && resource.Counted(o.BCSNetPool) && s.Available == 0:
		text += "; it is full"
	}
	return text
}

func (v *Chain) standing(p ipam.Place, o resource.Pool) string {
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
		return "in the default chain, on hosts for which the namespace has no pools of its own"
	case ipam.OwnBlock:
		return "its block of pool " + o.Spec.Parent
	case ipam.SplitIntoBlocks:
		return "split into blocks: the namespace draws from its own blocks"
	case ipam.GivesNoBlock:
		return "split into blocks: it assigns none automatically, and the namespace has none"
	case ipam.BehindItsOwn:
		return "in the default chain, and the namespace has its own pools"
	case ipam.OnlyByName:
		return "serves only requests that name it (default: false)"
	case ipam.NotOnHost:
		if !v.Host.IsValid() {
			return "no host may draw from it"
		}
		return "host " + v.Host.String() + " may not draw from it"
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

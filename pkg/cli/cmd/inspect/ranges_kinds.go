package inspect

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

func kinds(s *app.App) []kind {
	return []kind{
		{
			name: "pool", arg: "POOL", short: "Show the addresses of a pool by their state",
			long:      `Show which addresses of a pool are allocated, free, reserved and cooling.`,
			example:   "  bcsnetctl inspect pool blue\n  bcsnetctl inspect pool blue -o jsonpath='{.pools[0].free.ranges[*]}'",
			completes: resource.CompletePoolFirst(s, nil), choose: choosePool,
		},
		{
			name: "network", arg: "NETWORK", short: "Show the addresses of the pools of a network by their state",
			long: `Show which addresses of the pools of a network, and of their groups, are
allocated, free, reserved and cooling, pool by pool and together.`,
			example:   "  bcsnetctl inspect network prod\n  bcsnetctl inspect network prod -o json",
			completes: resource.CompleteNetworks(s), choose: chooseNetwork,
		},
		{
			name: "group", arg: "GROUP", short: "Show the addresses of a group by their state",
			long: `Show which addresses of a group, a pool that is a part of another one, are
allocated, free, reserved and cooling.`,
			example:   "  bcsnetctl inspect group blue-payments\n  bcsnetctl inspect group blue-payments -o json",
			completes: resource.CompleteGroups(s), choose: chooseGroup,
		},
		{
			name: "host", arg: "HOST|NODE", short: "Show which addresses a host has, and which are free for it",
			long: `Show which addresses are allocated on a host, which is named by its IP or its
node, and which are free in the pools that it may draw from.`,
			example:   "  bcsnetctl inspect host 10.0.0.11\n  bcsnetctl inspect host node-1 -o yaml",
			completes: resource.CompleteOneHost(s), check: resource.CheckHost, choose: chooseHost,
		},
		{
			name: "namespace", arg: "NAMESPACE", short: "Show which addresses a namespace has, and which are free for it",
			long: `Show which addresses pods of a namespace have, which its claims keep, and which
are free in the pools that it draws from, in the order in which these are tried.`,
			example:   "  bcsnetctl inspect namespace shop\n  bcsnetctl inspect namespace shop -o json",
			completes: first(resource.CompleteNamespaces(s)), check: checkNamespace, choose: chooseNamespace,
		},
	}
}

// first completes one argument, and nothing after it.
func first(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

func choosePool(ctx context.Context, v *inspection) error {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(v.all, func(p resource.Pool) bool { return p.Name == v.name }) {
		_, err := api.Get(ctx, v.name)
		if err == nil {
			err = app.Refuse(app.ReasonPoolNotFound, "pool %s is new", v.name).WithHint("run it again")
		}
		return err
	}
	v.chosen = []string{v.name}
	return nil
}

// chooseGroup takes a group: a pool with a parent.
func chooseGroup(ctx context.Context, v *inspection) error {
	if err := resource.CheckGroup(v.all, v.name); err != nil {
		return err
	}
	if err := choosePool(ctx, v); err != nil {
		return err
	}
	p, _ := v.index.Pools.Get(v.name)
	v.head = []headLine{{"Group", v.name}, {"Parent", p.Parent}}
	return nil
}

func chooseNetwork(_ context.Context, v *inspection) error {
	in, err := resource.InNetwork(v.all, v.name)
	for _, p := range resource.WithGroups(v.all, in) {
		v.chosen = append(v.chosen, p.Name)
	}
	v.head = []headLine{{"Network", v.name}, {"Pools", v.pools()}}
	return err
}

func chooseHost(ctx context.Context, v *inspection) error {
	h, err := resource.FindHost(ctx, v.App, v.name)
	if err != nil {
		return err
	}
	v.head = []headLine{{"Host", resource.JoinAddrs(h.Addrs)}}
	if h.Node != nil {
		v.head = append(v.head, headLine{"Node", h.Node.Name + ", " + h.Node.State})
	}
	for _, p := range v.all {
		if resource.Serves(p, h.Addrs, h.Nodes) {
			v.chosen = append(v.chosen, p.Name)
		}
	}
	v.whole = true
	v.mine = func(l lease.Lease) bool {
		_, has := l.From(func(l lease.Lease) bool { return l.State == lease.Active && slices.Contains(h.Addrs, l.Host) })
		return has
	}
	v.head = append(v.head, headLine{"Pools", v.pools()})
	return nil
}

// pools names the pools that were chosen.
func (v *inspection) pools() string {
	return printer.OrNone(humanize.List(v.chosen))
}

func checkNamespace(word string) error {
	if problems := validation.ValidateNamespaceName(word, false); len(problems) > 0 {
		return app.Usagef("%q cannot be the name of a namespace: %s", word, strings.Join(problems, "; "))
	}
	return nil
}

// chooseNamespace takes the pools that pods of a namespace draw from where they name none. Who may not read namespaces
// is not told of a misspelt name.
func chooseNamespace(ctx context.Context, v *inspection) error {
	labels, err := resource.LabelsOfNamespace(ctx, v.App, v.name)
	v.head = []headLine{{"Namespace", v.name}}
	switch {
	case err == nil:
		v.index.Pools.SetNamespace(v.name, labels)
	case apierrors.IsNotFound(err):
		v.head[0].text += ", which does not exist"
		v.Say.Warn("there is no namespace %s: see what its pods had and its claims keep", v.name)
		v.Hint("see the namespaces: kubectl get namespaces")
	case !apierrors.IsForbidden(err):
		return resource.Explain(v.App, err)
	}
	resource.SetNodes(ctx, v.App, v.index, v.all)
	v.chosen = v.index.Pools.PoolsFor(v.name)
	v.mine = func(l lease.Lease) bool { return slices.Contains(l.ChargedTo(), v.name) }
	v.head = append(v.head, headLine{"Pools", v.pools()})
	return nil
}

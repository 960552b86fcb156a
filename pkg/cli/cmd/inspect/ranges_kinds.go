package inspect

import (
	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
)

func kinds(s *app.App) []kind {
	return []kind{
		{
			name: "pool", arg: "POOL", short: "Show the addresses of a pool by their state",
			long: `Show which addresses of a pool are allocated, free, reserved and cooling.`,
			example: "  bcsnetctl inspect pool blue\n  bcsnetctl inspect pool blue -o " +
				"jsonpath='{.pools[0].free.ranges[*]}'",
			completes: resource.CompletePoolFirst(s, nil), choose: (*view.Inspection).Pool,
		},
		{
			name: "network", arg: "NETWORK", short: "Show the addresses of the pools of a network by their state",
			long: `Show which addresses of the pools of a network, and of their groups, are
allocated, free, reserved and cooling, pool by pool and together.`,
			example:   "  bcsnetctl inspect network prod\n  bcsnetctl inspect network prod -o json",
			completes: resource.CompleteNetworks(s), choose: (*view.Inspection).Network,
		},
		{
			name: "group", arg: "GROUP", short: "Show the addresses of a group by their state",
			long: `Show which addresses of a group, a pool that is a part of another one, are
allocated, free, reserved and cooling.`,
			example:   "  bcsnetctl inspect group blue-payments\n  bcsnetctl inspect group blue-payments -o json",
			completes: resource.CompleteGroups(s), choose: (*view.Inspection).Group,
		},
		{
			name: "host", arg: "HOST|NODE", short: "Show which addresses a host has, and which are free for it",
			long: `Show which addresses are allocated on a host, which is named by its IP or its
node, and which are free in the pools that it may draw from.`,
			example:   "  bcsnetctl inspect host 10.0.0.11\n  bcsnetctl inspect host node-1 -o yaml",
			completes: resource.CompleteOneHost(s), check: resource.CheckHost, choose: (*view.Inspection).Host,
		},
		{
			name: "namespace", arg: "NAMESPACE",
			short: "Show which addresses a namespace has, and which are free for it",
			long: `Show which addresses pods of a namespace have, which its claims keep, and which
are free in the pools that it draws from, in the order in which these are tried.`,
			example:   "  bcsnetctl inspect namespace shop\n  bcsnetctl inspect namespace shop -o json",
			completes: first(resource.CompleteNamespaces(s)), check: resource.CheckNamespace,
			choose: (*view.Inspection).Namespace,
		},
	}
}

// first completes only the first argument.
func first(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

package resource

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// completePools returns a completer of the words that of returns for each pool; it offers no empty words.
func completePools(s *app.App, of func(Pool) string) app.Completer {
	return s.Offer(func(ctx context.Context, args []string) (out []string, err error) {
		all, err := AllPools(ctx, s)
		for _, p := range all {
			if word := of(p); word != "" && !slices.Contains(args, p.Name) {
				out = append(out, word)
			}
		}
		return out, err
	})
}

// CompletePools offers the pools that are not named yet, with their use.
func CompletePools(s *app.App) app.Completer {
	return completePools(s, func(p Pool) string {
		about := CidrOf(p.BCSNetPool)
		if taken := terminal.Share(p.Status.Capacity-p.Status.Available, p.Status.Capacity); taken != "" {
			about += " " + taken + " used"
		}
		return cobra.CompletionWithDesc(p.Name, about)
	})
}

// CompleteParents offers the pools that can have groups.
func CompleteParents(s *app.App) app.Completer {
	return completePools(s, func(p Pool) string {
		if p.Spec.Parent != "" || p.Spec.BlockSize > 0 {
			return ""
		}
		return cobra.CompletionWithDesc(p.Name, CidrOf(p.BCSNetPool))
	})
}

// CompleteGroups offers the groups as the first argument.
func CompleteGroups(s *app.App) app.Completer {
	return app.First(completePools(s, func(p Pool) string {
		if !IsGroup(p) {
			return ""
		}
		return cobra.CompletionWithDesc(p.Name, "of pool "+p.Spec.Parent)
	}))
}

// CompleteNetworks offers the networks of pools as the first argument.
func CompleteNetworks(s *app.App) app.Completer {
	return app.First(s.Offer(func(ctx context.Context, _ []string) (out []string, err error) {
		all, err := AllPools(ctx, s)
		for _, p := range all {
			if of := NetworkOf(p); of != "" {
				out = append(out, of)
			}
		}
		return app.SortedOnce(out), err
	}))
}

// CompletePoolFirst offers pools as the first argument, then the values that of returns for the pool.
func CompletePoolFirst(s *app.App, of func(Pool) []string) app.Completer {
	if of == nil {
		return app.First(CompletePools(s))
	}
	return poolThen(s, func(_ context.Context, p Pool, args []string) ([]string, error) {
		return app.Unnamed(of(p), args), nil
	})
}

// CompletePoolNodes offers pools as the first argument, then the nodes that the pool does not list.
func CompletePoolNodes(s *app.App) app.Completer {
	return poolThen(s, func(ctx context.Context, p Pool, args []string) (out []string, err error) {
		nodes, err := ListNodes(ctx, s)
		hosts := HostsOf(p, nodes)
		for _, n := range nodes {
			for _, a := range n.Addrs {
				if !hosts.Draws(a) && !slices.Contains(args, a.String()) {
					out = append(out, cobra.CompletionWithDesc(a.String(), n.Name))
				}
			}
		}
		return out, err
	})
}

// poolThen offers pools as the first argument, then the words of the named pool.
func poolThen(s *app.App, words func(context.Context, Pool, []string) ([]string, error)) app.Completer {
	then := s.Offer(func(ctx context.Context, args []string) ([]string, error) {
		p, err := OnePool(ctx, s, args[0])
		if err != nil {
			return nil, err
		}
		return words(ctx, p, args)
	})
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return CompletePools(s)(cmd, nil, typed)
		}
		return then(cmd, args, typed)
	}
}

// CompleteHosts offers the pools' hosts that are not named yet.
func CompleteHosts(s *app.App) app.Completer {
	return s.Offer(func(ctx context.Context, args []string) (hosts []string, err error) {
		all, err := AllPools(ctx, s)
		for _, p := range all {
			hosts = append(hosts, p.Spec.Hosts...)
		}
		return app.Unnamed(app.SortedOnce(hosts), args), err
	})
}

// CompleteNodes offers the names of the nodes.
func CompleteNodes(s *app.App) app.Completer {
	return s.Offer(func(ctx context.Context, _ []string) (out []string, err error) {
		nodes, err := ListNodes(ctx, s)
		for _, n := range nodes {
			out = append(out, cobra.CompletionWithDesc(n.Name, JoinAddrs(n.Internal)))
		}
		return out, err
	})
}

// CompleteNodesUnnamed offers the nodes that are not named yet.
func CompleteNodesUnnamed(s *app.App) app.Completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		offered, directive := CompleteNodes(s)(cmd, args, typed)
		return slices.DeleteFunc(offered, func(text string) bool {
			name, _, _ := strings.Cut(text, "\t")
			return slices.Contains(args, name)
		}), directive
	}
}

// CompleteOneHost offers the hosts of pools and the nodes as the only argument.
func CompleteOneHost(s *app.App) app.Completer {
	return app.First(func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		hosts, _ := CompleteHosts(s)(cmd, args, typed)
		nodes, directive := CompleteNodes(s)(cmd, args, typed)
		return append(hosts, nodes...), directive
	})
}

// CompleteNamespaces offers the namespaces of the cluster.
func CompleteNamespaces(s *app.App) app.Completer {
	return s.Offer(func(ctx context.Context, _ []string) (out []string, err error) {
		all, err := ListNamespaces(ctx, s)
		for _, n := range all {
			out = append(out, n.GetName())
		}
		return out, err
	})
}

// CompleteBound offers the namespaces to which the named pool is bound by name.
func CompleteBound(s *app.App) app.Completer {
	return s.Offer(func(ctx context.Context, args []string) ([]string, error) {
		if len(args) == 0 {
			return nil, nil
		}
		p, err := OnePool(ctx, s, args[0])
		if err != nil {
			return nil, err
		}
		if p.Spec.BlockSize == 0 {
			return p.Spec.Namespaces, nil
		}
		names := slices.Clone(p.Spec.Namespaces)
		blocks, err := blocksOf(ctx, s, p.Name)
		for _, b := range blocks {
			names = append(names, b.Spec.Namespaces...)
		}
		return app.SortedOnce(names), err
	})
}

// CompleteBlocks offers the blocks of the pool in the first argument.
func CompleteBlocks(s *app.App) app.Completer {
	return s.Offer(func(ctx context.Context, args []string) (out []string, err error) {
		if len(args) == 0 {
			return nil, nil
		}
		blocks, err := blocksOf(ctx, s, args[0])
		for _, b := range blocks {
			out = append(out, cobra.CompletionWithDesc(b.Spec.AvailableIPs[0], OwnerOf(b)))
		}
		return out, err
	})
}

func blocksOf(ctx context.Context, s *app.App, parent string) ([]Pool, error) {
	all, err := AllPools(ctx, s)
	return BlocksOf(all)[parent], err
}

// CompletePods offers the pods of the namespace as the first argument.
func CompletePods(s *app.App, in *InNamespace) app.Completer {
	return app.First(s.Offer(func(ctx context.Context, _ []string) (out []string, err error) {
		c, err := s.Dynamic()
		if err != nil {
			return nil, err
		}
		if err := in.Complete(s); err != nil {
			return nil, err
		}
		all, err := c.Resource(PodResource()).Namespace(in.Name).List(ctx, metav1.ListOptions{Limit: maxOffered})
		if err != nil {
			return nil, err
		}
		for _, p := range all.Items {
			out = append(out, p.GetName())
		}
		return out, nil
	}))
}

// completeClaimNames offers the claims of all namespaces as NAMESPACE/NAME.
func completeClaimNames(s *app.App) app.Completer {
	return s.Offer(func(ctx context.Context, _ []string) (out []string, err error) {
		all, err := AllClaims(ctx, s, "", metav1.ListOptions{})
		for _, c := range all {
			out = append(out, cobra.CompletionWithDesc(c.FullName(), OwnerText(c.BCSNetIPClaim)))
		}
		return out, err
	})
}

// CompleteClaims offers the claims of the namespace that are not named yet.
func CompleteClaims(s *app.App, in *InNamespace) app.Completer {
	return s.Offer(func(ctx context.Context, args []string) (out []string, err error) {
		if err := in.Complete(s); err != nil {
			return nil, err
		}
		all, err := AllClaims(ctx, s, in.Name, metav1.ListOptions{})
		for _, c := range all {
			if !slices.Contains(args, c.Name) {
				out = append(out, cobra.CompletionWithDesc(c.Name, OwnerText(c.BCSNetIPClaim)))
			}
		}
		return out, err
	})
}

// CompleteContexts offers the contexts of the kubeconfig.
func CompleteContexts(s *app.App, root *cobra.Command) {
	app.CompleteWith(root, "context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		raw, err := s.Flags.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.Sorted(maps.Keys(raw.Contexts)), cobra.ShellCompDirectiveNoFileComp
	})
}

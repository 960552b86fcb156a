package resource

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// CompletePools offers the pools that are not named yet, with their use.
func CompletePools(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			all, err := AllPools(ctx, s)
			var out []string
			for _, p := range all {
				if slices.Contains(args, p.Name) {
					continue
				}
				about := CidrOf(p.BCSNetPool)
				if taken := terminal.Share(p.Status.Capacity-p.Status.Available, p.Status.Capacity); taken != "" {
					about += " " + taken + " used"
				}
				out = append(out, cobra.CompletionWithDesc(p.Name, about))
			}
			return out, err
		})
	}
}

// CompleteParents offers the pools that can have groups.
func CompleteParents(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) (out []string, err error) {
			all, err := AllPools(ctx, s)
			for _, p := range all {
				if p.Spec.Parent == "" && p.Spec.BlockSize == 0 {
					out = append(out, cobra.CompletionWithDesc(p.Name, CidrOf(p.BCSNetPool)))
				}
			}
			return out, err
		})
	}
}

// CompleteGroups offers the groups as the first argument.
func CompleteGroups(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.Offer(cmd, func(ctx context.Context) (out []string, err error) {
			all, err := AllPools(ctx, s)
			for _, p := range all {
				if IsGroup(p) {
					out = append(out, cobra.CompletionWithDesc(p.Name, "of pool "+p.Spec.Parent))
				}
			}
			return out, err
		})
	}
}

// AllPools reads all pools of the cluster.
func AllPools(ctx context.Context, s *app.App) ([]Pool, error) {
	api, err := NewPools(s)
	if err != nil {
		return nil, err
	}
	return api.List(ctx)
}

// onePool reads a pool of the cluster.
func onePool(ctx context.Context, s *app.App, name string) (Pool, error) {
	api, err := NewPools(s)
	if err != nil {
		return Pool{}, err
	}
	return api.Get(ctx, name)
}

// CompletePoolFirst offers pools as the first argument, then the values that of returns for the pool.
func CompletePoolFirst(s *app.App, of func(Pool) []string) app.Completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return CompletePools(s)(cmd, nil, typed)
		case of == nil:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			p, err := onePool(ctx, s, args[0])
			if err != nil {
				return nil, err
			}
			return app.Unnamed(of(p), args), nil
		})
	}
}

// CompletePoolNodes offers pools as the first argument, then the nodes that the pool does not list.
func CompletePoolNodes(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return CompletePools(s)(cmd, nil, typed)
		}
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			p, err := onePool(ctx, s, args[0])
			if err != nil {
				return nil, err
			}
			nodes, err := ListNodes(ctx, s)
			hosts := HostsOf(p, nodes)
			var out []string
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
}

// CompleteHosts offers the pools' hosts that are not named yet.
func CompleteHosts(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			all, err := AllPools(ctx, s)
			var hosts []string
			for _, p := range all {
				hosts = append(hosts, p.Spec.Hosts...)
			}
			slices.Sort(hosts)
			return app.Unnamed(slices.Compact(hosts), args), err
		})
	}
}

// CompleteNodes offers the names of the nodes.
func CompleteNodes(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			nodes, err := ListNodes(ctx, s)
			var out []string
			for _, n := range nodes {
				out = append(out, cobra.CompletionWithDesc(n.Name, JoinAddrs(n.Internal)))
			}
			return out, err
		})
	}
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
func CompleteOneHost(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		hosts, _ := CompleteHosts(s)(cmd, args, typed)
		nodes, directive := CompleteNodes(s)(cmd, args, typed)
		return append(hosts, nodes...), directive
	}
}

// CompleteNetworks offers the networks of pools as the first argument.
func CompleteNetworks(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			all, err := AllPools(ctx, s)
			var out []string
			for _, p := range all {
				if of := NetworkOf(p); of != "" {
					out = append(out, of)
				}
			}
			slices.Sort(out)
			return slices.Compact(out), err
		})
	}
}

// CompleteNamespaces offers the namespaces of the cluster.
func CompleteNamespaces(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			all, err := ListNamespaces(ctx, s)
			var out []string
			for _, n := range all {
				out = append(out, n.GetName())
			}
			return out, err
		})
	}
}

// CompleteBound offers the namespaces to which the named pool is bound by name.
func CompleteBound(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			if len(args) == 0 {
				return nil, nil
			}
			p, err := onePool(ctx, s, args[0])
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
}

// CompleteBlocks offers the blocks of the pool in the first argument.
func CompleteBlocks(s *app.App) app.Completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) (out []string, err error) {
			if len(args) == 0 {
				return nil, nil
			}
			blocks, err := blocksOf(ctx, s, args[0])
			for _, b := range blocks {
				out = append(out, cobra.CompletionWithDesc(b.Spec.AvailableIPs[0], strings.Join(b.Spec.Namespaces,
					", ")))
			}
			return out, err
		})
	}
}

// blocksOf reads the blocks of one pool.
func blocksOf(ctx context.Context, s *app.App, parent string) ([]Pool, error) {
	all, err := AllPools(ctx, s)
	return BlocksOf(all)[parent], err
}

// CompletePods offers the pods of the namespace as the first argument.
func CompletePods(s *app.App, in *InNamespace) app.Completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
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
			var out []string
			for _, p := range all.Items {
				out = append(out, p.GetName())
			}
			return out, nil
		})
	}
}

// CompleteContexts offers the contexts of the kubeconfig.
func CompleteContexts(s *app.App, root *cobra.Command) {
	app.CompleteWith(root, "context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		raw, err := s.Flags.ToRawKubeConfigLoader().RawConfig()
		var out []string
		for name := range raw.Contexts {
			out = append(out, name)
		}
		if err != nil {
			out = nil
		}
		slices.Sort(out)
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}

package resource

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// CompletePools offers the pools that are not named yet, and how full they are.
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

// CompletePoolFirst offers pools, and after one of them what of says of it.
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

// CompletePoolNodes offers pools, and after one of them the nodes that it does not list.
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
			networks := HostSubnetsOf(p)
			var out []string
			for _, n := range nodes {
				for _, a := range n.Addrs {
					_, inside := networks.Of(a)
					if !inside && HostIndex(p.Spec.Hosts, a) < 0 && !slices.Contains(args, a.String()) {
						out = append(out, cobra.CompletionWithDesc(a.String(), n.Name))
					}
				}
			}
			return out, err
		})
	}
}

// CompleteHosts offers the hosts of the pools that are not named yet.
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

// CompleteNamespaces offers the namespaces of the cluster.
func CompleteNamespaces(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			c, err := s.Dynamic()
			if err != nil {
				return nil, err
			}
			all, err := ListPages(ctx, c.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")), metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			var out []string
			for _, n := range all {
				out = append(out, n.GetName())
			}
			return out, nil
		})
	}
}

// CompletePods offers one pod of the namespace.
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

package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// completePools offers the pools that are not named yet, and how full they are.
func completePools(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			all, err := allPools(ctx, s)
			var out []string
			for _, p := range all {
				if slices.Contains(args, p.Name) {
					continue
				}
				about := cidrOf(p.BCSNetPool)
				if taken := terminal.Share(p.Status.Capacity-p.Status.Available, p.Status.Capacity); taken != "" {
					about += " " + taken + " used"
				}
				out = append(out, cobra.CompletionWithDesc(p.Name, about))
			}
			return out, err
		})
	}
}

func allPools(ctx context.Context, s *app.App) ([]pool, error) {
	api, err := newPools(s)
	if err != nil {
		return nil, err
	}
	return api.list(ctx)
}

// completePoolFirst offers pools, and after one of them what of says of it.
func completePoolFirst(s *app.App, of func(pool) []string) app.Completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return completePools(s)(cmd, nil, typed)
		case of == nil:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			api, err := newPools(s)
			if err != nil {
				return nil, err
			}
			p, err := api.get(ctx, args[0])
			if err != nil {
				return nil, err
			}
			return app.Unnamed(of(p), args), nil
		})
	}
}

// completePoolNodes offers pools, and after one of them the nodes that it does not list.
func completePoolNodes(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return completePools(s)(cmd, nil, typed)
		}
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			api, err := newPools(s)
			if err != nil {
				return nil, err
			}
			p, err := api.get(ctx, args[0])
			if err != nil {
				return nil, err
			}
			nodes, err := listNodes(ctx, s)
			networks := hostSubnetsOf(p)
			var out []string
			for _, n := range nodes {
				for _, a := range n.addrs {
					_, inside := networks.Of(a)
					if !inside && hostIndex(p.Spec.Hosts, a) < 0 && !slices.Contains(args, a.String()) {
						out = append(out, cobra.CompletionWithDesc(a.String(), n.name))
					}
				}
			}
			return out, err
		})
	}
}

// completeHosts offers the hosts of the pools that are not named yet.
func completeHosts(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			all, err := allPools(ctx, s)
			var hosts []string
			for _, p := range all {
				hosts = append(hosts, p.Spec.Hosts...)
			}
			slices.Sort(hosts)
			return app.Unnamed(slices.Compact(hosts), args), err
		})
	}
}

// completeNodes offers the names of the nodes.
func completeNodes(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			nodes, err := listNodes(ctx, s)
			var out []string
			for _, n := range nodes {
				out = append(out, cobra.CompletionWithDesc(n.name, joinAddrs(n.internal)))
			}
			return out, err
		})
	}
}

// completeNamespaces offers the namespaces of the cluster.
func completeNamespaces(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			c, err := s.Dynamic()
			if err != nil {
				return nil, err
			}
			all, err := listPages(ctx, c.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")), metav1.ListOptions{})
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

// completePods offers one pod of the namespace.
func completePods(s *app.App, in *inNamespace) app.Completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			c, err := s.Dynamic()
			if err != nil {
				return nil, err
			}
			if err := in.complete(s); err != nil {
				return nil, err
			}
			all, err := c.Resource(podResource()).Namespace(in.name).List(ctx, metav1.ListOptions{Limit: maxOffered})
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

// completeContexts offers the contexts of the kubeconfig.
func completeContexts(s *app.App, root *cobra.Command) {
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

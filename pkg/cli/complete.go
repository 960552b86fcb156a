package cli

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// completionEnv says how long one press of the tab key may take, as 3s, where the API server is far away.
const completionEnv = "BCSNETCTL_COMPLETION_TIMEOUT"

// completeTime bounds the questions behind one press of the tab key.
func completeTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv(completionEnv)); err == nil && d > 0 {
		return d
	}
	return 1500 * time.Millisecond
}

// completer is what cobra asks for the words that may follow. It says nothing when something fails.
type completer = cobra.CompletionFunc

// complete gives a flag fixed values; none means that nothing is offered, not even files.
func complete(cmd *cobra.Command, flag string, values ...string) {
	completeWith(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func completeWith(cmd *cobra.Command, flag string, f completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag does not exist: a mistake in this package
	}
}

// offer runs a question in the time there is; found nothing means that there is nothing to offer.
func (s *session) offer(cmd *cobra.Command, ask func(context.Context) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTime())
	defer cancel()
	if cfg, err := s.connect(); err == nil {
		cfg.WarningHandler = rest.NoWarnings{}
	}
	found, err := ask(ctx)
	if err != nil {
		found = nil
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completePools offers the pools that are not named yet, and how full they are.
func (s *session) completePools(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context) ([]string, error) {
		all, err := s.readPools(ctx)
		var out []string
		for _, p := range all {
			if slices.Contains(args, p.Name) {
				continue
			}
			about := cidrOf(p.BCSNetPool)
			if taken := share(p.Status.Capacity-p.Status.Available, p.Status.Capacity); taken != "" {
				about += " " + taken + " used"
			}
			out = append(out, cobra.CompletionWithDesc(p.Name, about))
		}
		return out, err
	})
}

func (s *session) readPools(ctx context.Context) ([]pool, error) {
	api, err := s.pools()
	if err != nil {
		return nil, err
	}
	return api.list(ctx)
}

// completePoolFirst offers pools, and after one of them what of says of it.
func (s *session) completePoolFirst(of func(pool) []string) completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return s.completePools(cmd, nil, typed)
		case of == nil:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.offer(cmd, func(ctx context.Context) ([]string, error) {
			api, err := s.pools()
			if err != nil {
				return nil, err
			}
			p, err := api.get(ctx, args[0])
			if err != nil {
				return nil, err
			}
			return unnamed(of(p), args), nil
		})
	}
}

// completePoolNodes offers pools, and after one of them the nodes that it does not list.
func (s *session) completePoolNodes(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return s.completePools(cmd, nil, typed)
	}
	return s.offer(cmd, func(ctx context.Context) ([]string, error) {
		api, err := s.pools()
		if err != nil {
			return nil, err
		}
		p, err := api.get(ctx, args[0])
		if err != nil {
			return nil, err
		}
		nodes, err := s.nodes(ctx)
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

// completeHosts offers the hosts of the pools that are not named yet.
func (s *session) completeHosts(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context) ([]string, error) {
		all, err := s.readPools(ctx)
		var hosts []string
		for _, p := range all {
			hosts = append(hosts, p.Spec.Hosts...)
		}
		slices.Sort(hosts)
		return unnamed(slices.Compact(hosts), args), err
	})
}

// completeNodes offers the names of the nodes.
func (s *session) completeNodes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context) ([]string, error) {
		nodes, err := s.nodes(ctx)
		var out []string
		for _, n := range nodes {
			out = append(out, cobra.CompletionWithDesc(n.name, joinAddrs(n.internal)))
		}
		return out, err
	})
}

// completeNamespaces offers the namespaces of the cluster.
func (s *session) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context) ([]string, error) {
		c, err := s.dynamic()
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

// completePods offers one pod of the namespace.
func (s *session) completePods(in *inNamespace) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.offer(cmd, func(ctx context.Context) ([]string, error) {
			c, err := s.dynamic()
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
func completeContexts(s *session, root *cobra.Command) {
	completeWith(root, "context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		raw, err := s.flags.ToRawKubeConfigLoader().RawConfig()
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

// unnamed leaves out the words that were typed already.
func unnamed(all, typed []string) []string {
	var out []string
	for _, w := range all {
		if !slices.Contains(typed, w) {
			out = append(out, w)
		}
	}
	return out
}

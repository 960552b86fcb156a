package pool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

type poolAddHost struct{ hostChange }

func newAddHost(s *app.App) *cobra.Command {
	v := &poolAddHost{hostChange{App: s}}
	cmd := &cobra.Command{
		Use: "add-host POOL [HOST...]", Args: app.Takes(1, 0), RunE: app.Runs(v),
		Short: "Let hosts draw from a pool",
		Long: `Let hosts draw from a pool. A host is named by the IP that its node has and that
the CNI plugin sends. Naming a host that the pool already has, by itself or in a
host subnet, is not an error. A host whose node the host selector matches is
listed, too: then it may draw whatever the node's labels are.

` + resource.HostArgsHelp,
		Example: `  bcsnetctl pool add-host blue 10.0.0.13
  bcsnetctl pool add-host blue 10.0.0.13 10.0.0.14 --dry-run=client
  bcsnetctl pool add-host blue --selector rack=7
  bcsnetctl pool add-host blue -f hosts.txt`,
		ValidArgsFunction: resource.CompletePoolNodes(s),
	}
	v.addTo(cmd)
	return cmd
}

func (v *poolAddHost) Run(ctx context.Context) error {
	api, err := resource.NewPools(v.hostChange.App)
	if err != nil {
		return err
	}
	nodes, err := v.from.Matched(ctx, v.App)
	if err != nil {
		return err
	}
	hosts := resource.WithFirst(v.from.Hosts, nodes)
	if len(hosts) == 0 {
		v.Say.Note("no host is named: nothing to add")
	}
	var added, same, inside []string
	inherited := false
	edited, err := api.Edit(ctx, v.name, func(p resource.Pool) (map[string]any, error) {
		if err := resource.CheckOwnHosts(p, "add-host"); err != nil {
			return nil, err
		}
		added, same, inside = nil, nil, nil
		var networks ipam.Networks
		if inherited = resource.InheritsHosts(p); !inherited {
			networks = resource.HostsOf(p, nil).HostSubnets
		}
		list := slices.Clone(p.Spec.Hosts)
		for _, h := range hosts {
			if resource.HostIndex(p.Spec.Hosts, h) >= 0 {
				same = append(same, h.String())
				continue
			}
			if n, ok := networks.Of(h); ok {
				inside = append(inside, fmt.Sprintf("%s (in %s)", h, n))
				continue
			}
			added = append(added, h.String())
			list = append(list, h.String())
		}
		if len(added) == 0 {
			return nil, nil
		}
		return map[string]any{"hosts": resource.Values(list)}, nil
	})
	if err != nil {
		return err
	}
	if len(same) > 0 {
		v.Say.Note("already in pool %s: %s", v.name, strings.Join(same, ", "))
	}
	if len(inside) > 0 {
		v.Say.Note("already in the host subnets of pool %s: %s", v.name, strings.Join(inside, ", "))
	}
	if len(added) > 0 {
		v.Say.Done("%s added to pool %s", app.Those("host", added), v.name)
		if inherited {
			v.Say.Warn("the hosts of parent %s may no longer draw from it: it now has its own hosts",
				edited.Spec.Parent)
		}
	}
	return v.output.Object(v.Out, edited.Stored)
}

// hostChange holds the arguments of add-host and remove-host.
type hostChange struct {
	*app.App
	output printer.Output
	name   string
	typed  int
	from   resource.HostArgs
}

func (v *hostChange) addTo(cmd *cobra.Command) {
	v.from.AddTo(v.App, cmd)
	v.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
}

func (v *hostChange) Complete(args []string) error {
	v.name, v.typed = args[0], len(args)-1
	return v.from.Read(v.App, args[1:])
}

func (v *hostChange) Validate() error { return cmp.Or(v.from.Validate(v.typed), v.output.Validate()) }

package cli

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

type poolAddHost struct {
	*session
	output output
	name   string
	typed  int
	from   hostArgs
}

func newPoolAddHost(s *session) *cobra.Command {
	v := &poolAddHost{session: s}
	cmd := &cobra.Command{
		Use: "add-host POOL [HOST...]", Args: takes(1, 0), RunE: runs(v),
		Short: "Let hosts draw from a pool",
		Long: `Let hosts draw from a pool. A host is named by the IP that its node has and that
the CNI plugin sends. A host that the pool already has is no error.

` + hostArgsHelp,
		Example: `  bcsnetctl pool add-host blue 10.0.0.13
  bcsnetctl pool add-host blue 10.0.0.13 10.0.0.14 --dry-run=client
  bcsnetctl pool add-host blue --selector rack=7
  bcsnetctl pool add-host blue -f hosts.txt`,
		ValidArgsFunction: s.completePoolNodes,
	}
	v.from.addTo(s, cmd)
	s.dry.addTo(cmd)
	v.output.addToChange(cmd)
	return cmd
}

func (v *poolAddHost) Complete(args []string) error {
	v.name, v.typed = args[0], len(args)-1
	return v.from.read(v.session, args[1:])
}

func (v *poolAddHost) Validate() error {
	if err := v.from.validate(v.typed); err != nil {
		return err
	}
	return v.output.validate()
}

func (v *poolAddHost) Run(ctx context.Context) error {
	api, err := v.pools()
	if err != nil {
		return err
	}
	nodes, err := v.from.matched(ctx, v.session)
	if err != nil {
		return err
	}
	hosts := withFirst(v.from.hosts, nodes)
	if len(hosts) == 0 {
		v.say.note("no host is named: nothing to add")
	}
	var added, same []string
	edited, err := api.edit(ctx, v.name, func(p pool) (map[string]any, error) {
		added, same = nil, nil
		list := slices.Clone(p.Spec.Hosts)
		for _, h := range hosts {
			if hostIndex(p.Spec.Hosts, h) >= 0 {
				same = append(same, h.String())
				continue
			}
			added = append(added, h.String())
			list = append(list, h.String())
		}
		if len(added) == 0 {
			return nil, nil
		}
		return map[string]any{"hosts": values(list)}, nil
	})
	if err != nil {
		return err
	}
	if len(same) > 0 {
		v.say.note("already in pool %s: %s", v.name, strings.Join(same, ", "))
	}
	if len(added) > 0 {
		v.say.done("%s added to pool %s", those("host", added), v.name)
	}
	return v.output.object(v.Out, edited.stored)
}

// hostIndex is the place of a host in a list, however it is written there; -1 when it is not in it.
func hostIndex(list []string, h netip.Addr) int {
	return slices.IndexFunc(list, func(s string) bool { a, err := ipam.ParseAddr(s); return err == nil && a == h })
}

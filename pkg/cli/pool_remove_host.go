package cli

import (
	"context"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

type poolRemoveHost struct {
	*session
	output output
	name   string
	args   []string
	hosts  []netip.Addr
}

func newPoolRemoveHost(s *session) *cobra.Command {
	v := &poolRemoveHost{session: s}
	cmd := &cobra.Command{
		Use: "remove-host POOL HOST...", Args: takes(2, 0), RunE: runs(v),
		Short: "No longer let hosts draw from a pool",
		Long: `No longer let hosts draw from a pool. Addresses that pods on the host have stay
as they are; when the machine is gone for good, bcsnetctl release-host frees
them.`,
		Example: `  bcsnetctl pool remove-host blue 10.0.0.13
  bcsnetctl pool remove-host blue 10.0.0.13 10.0.0.14 --dry-run=client`,
		ValidArgsFunction: s.completePoolFirst(func(p pool) []string { return p.Spec.Hosts }),
	}
	s.dry.addTo(cmd)
	v.output.addToChange(cmd)
	return cmd
}

func (v *poolRemoveHost) Complete(args []string) error {
	v.name, v.args = args[0], args[1:]
	return nil
}

func (v *poolRemoveHost) Validate() (err error) {
	if v.hosts, err = parseHosts(v.args); err != nil {
		return err
	}
	return v.output.validate()
}

func (v *poolRemoveHost) Run(ctx context.Context) error {
	api, err := v.pools()
	if err != nil {
		return err
	}
	left := 0
	edited, err := api.edit(ctx, v.name, func(p pool) (map[string]any, error) {
		list := slices.Clone(p.Spec.Hosts)
		for _, h := range v.hosts {
			i := hostIndex(list, h)
			if i < 0 {
				return nil, v.absent(p, h)
			}
			for ; i >= 0; i = hostIndex(list, h) { // the schema lets a host be listed twice
				list = slices.Delete(list, i, i+1)
			}
		}
		left = len(list)
		return map[string]any{"hosts": values(list)}, nil
	})
	if err != nil {
		return err
	}
	var names []string
	for _, h := range v.hosts {
		names = append(names, h.String())
	}
	v.say.done("%s taken out of pool %s", namedHosts(names), v.name)
	if left == 0 {
		v.say.warn("no host may draw from pool %s any more", v.name)
	}
	v.warnHeld(ctx)
	return v.output.object(v.Out, edited.stored)
}

func (v *poolRemoveHost) absent(p pool, h netip.Addr) error {
	f := refuse(ipam.ReasonHostNotInPool, "host %s is not in pool %s", h, v.name)
	if near := nearest(h.String(), p.Spec.Hosts); near != "" {
		return f.withHint("did you mean %s? Its hosts: bcsnetctl pool describe %s", near, v.name)
	}
	return f.withHint("see its hosts: bcsnetctl pool describe %s", v.name)
}

// warnHeld says what the hosts still hold of the pool.
func (v *poolRemoveHost) warnHeld(ctx context.Context) {
	for _, h := range v.hosts {
		held, err := v.held(ctx, leaseQuery{pool: v.name, host: h.String(), status: ipam.Active.String()}, func(ipam.Lease) bool { return true })
		switch {
		case err != nil:
			v.say.warn("it is unknown whether the host still has addresses of the pool: %v", err)
			return
		case len(held) > 0:
			v.say.warn("host %s still has %s of pool %s in use; they stay until their pods end", h, plural(len(held), "address"), v.name)
			v.hint("when the machine is gone for good: bcsnetctl release-host %s", h)
		}
	}
}

package pool

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// poolMove prints commands that move addresses from one pool to another. It does not touch leases: after release, an
// address is allocated by whichever pool then has it.
type poolMove struct {
	*app.App
	from, to string
	// into: the other pool exists already. part has the addresses to move; empty means all.
	into bool
	part []resource.Entry
	// verb is the command.
	verb string
}

const moveHelp = `

Nothing is changed. The commands go to standard output, filled in for these
pools: read them, then run them in a shell. Pods and claims keep their
addresses; the pool that has an address allocates it next. In between, both
pools have the addresses, and the one with the leases serves them. Groups,
blocks and pools with groups or blocks cannot move, because their parent is
fixed: then the exit code is 1.`

func newRename(s *app.App) *cobra.Command {
	return (&poolMove{App: s, verb: "rename"}).command(&cobra.Command{
		Use: "rename POOL NEW", Args: app.Takes(2, 2),
		Short: "Print the commands that give a pool another name",
		Long: `Print the commands that give a pool another name: the name of a pool is fixed,
so they make another pool like it, which takes over its addresses.` + moveHelp,
		Example: "  bcsnetctl pool rename blue green > steps.sh",
	})
}

func newMerge(s *app.App) *cobra.Command {
	return (&poolMove{App: s, verb: "merge", into: true}).command(&cobra.Command{
		Use: "merge POOL INTO", Args: app.Takes(2, 2),
		Short: "Print the commands that move all addresses of a pool into another",
		Long: `Print the commands that move all addresses of a pool into another one of the
same subnet, and delete it.` + moveHelp,
		Example: "  bcsnetctl pool merge blue green > steps.sh",
	})
}

func newSplit(s *app.App) *cobra.Command {
	return (&poolMove{App: s, verb: "split"}).command(&cobra.Command{
		Use: "split POOL NEW ADDRESS...", Args: app.Takes(3, 0),
		Short: "Print the commands that move addresses of a pool into a new one",
		Long: `Print the commands that move addresses of a pool into a new one, which is like
it in all else. For a part with other hosts or namespaces, see also the flag
--parent of bcsnetctl pool create.` + moveHelp,
		Example: "  bcsnetctl pool split blue green 10.0.0.64-10.0.0.95 > steps.sh",
	})
}

func (v *poolMove) command(cmd *cobra.Command) *cobra.Command {
	cmd.RunE, cmd.ValidArgsFunction = app.Runs(v), func(cmd *cobra.Command, args []string, typed string) (
		[]string, cobra.ShellCompDirective,
	) {
		if len(args) == 0 || len(args) == 1 && v.into {
			return resource.CompletePools(v.App)(cmd, args, typed)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

func (v *poolMove) Complete(args []string) (err error) {
	v.from, v.to = args[0], args[1]
	v.part, err = resource.ParseEntries(args[2:])
	return err
}

func (v *poolMove) Validate() error {
	if v.from == v.to {
		return app.Usagef("pool %s is named twice", v.from)
	}
	if len(validation.NameIsDNSSubdomain(v.to, false)) > 0 {
		return app.Usagef("%q is not a name for a pool", v.to)
	}
	return nil
}

// Run prints the commands.
func (v *poolMove) Run(ctx context.Context) error {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	all, err := api.List(ctx)
	if err != nil {
		return err
	}
	from, err := api.Get(ctx, v.from)
	if err != nil {
		return err
	}
	to, err := v.target(ctx, api, all)
	if err != nil {
		return err
	}
	for _, p := range []resource.Pool{from, to} {
		if err := v.fixed(p, all); err != nil {
			return err
		}
	}
	reserved, err := resource.HeldLeases(ctx, v.App, resource.LeaseQuery{Pool: v.from}, lease.Lease.IsSetAside)
	if err != nil {
		return err
	}
	claims, err := v.claims(ctx)
	if err != nil {
		return err
	}
	steps, err := v.steps(from, to, reserved, claims)
	if err != nil {
		return err
	}
	if _, err := v.Out.Write([]byte(v.Called(script(steps)))); err != nil {
		return err
	}
	return (&app.Failure{Message: "nothing was changed: the commands on standard output do it"}).
		WithHint("keep them in a file, look through it, then run it: bcsnetctl pool %s ... > steps.sh; sh steps.sh",
			v.verb)
}

// target returns the pool that gets the addresses; a pool without an object if it must be created.
func (v *poolMove) target(ctx context.Context, api *resource.Pools, all []resource.Pool) (resource.Pool, error) {
	if v.into {
		return api.Get(ctx, v.to)
	}
	if slices.ContainsFunc(all, func(p resource.Pool) bool { return p.Name == v.to }) {
		return resource.Pool{}, app.Refuse(app.ReasonPoolExists, "there is a pool %s already", v.to).
			WithHint("to move addresses into it: bcsnetctl pool merge %s %s", v.from, v.to)
	}
	return resource.Pool{}, nil
}

// fixed refuses pools whose addresses cannot move.
func (v *poolMove) fixed(p resource.Pool, all []resource.Pool) error {
	if p.BCSNetPool == nil {
		return nil
	}
	var why string
	switch {
	case p.DeletionTimestamp != nil:
		return resource.Terminating(p.Name)
	case p.Spec.Parent != "":
		why = "is carved from pool " + p.Spec.Parent
	case p.Spec.BlockSize > 0:
		why = "is split into blocks"
	case slices.ContainsFunc(all, func(o resource.Pool) bool { return o.Spec.Parent == p.Name }):
		why = "has groups"
	default:
		return nil
	}
	return app.Refuse(app.ReasonInvalidParent, "pool %s %s: that is fixed, and its addresses cannot move", p.Name, why).
		WithHint("make another pool, stop this one with bcsnetctl pool cordon %s, and delete it when its pods have "+
			"ended", p.Name)
}

// claims names the claims whose spec.pool is the pool.
func (v *poolMove) claims(ctx context.Context) (names []string, err error) {
	all, err := resource.AllClaims(ctx, v.App, "", metav1.ListOptions{})
	for _, c := range all {
		if c.Spec.Pool == v.from {
			names = append(names, c.FullName())
		}
	}
	return names, err
}

// moving returns the addresses to move. It refuses anything that is not an address, because the result is part of a
// shell command.
func (v *poolMove) moving(from resource.Pool) (out []string, _ error) {
	var failed app.Several
	if len(v.part) == 0 {
		for _, text := range from.Spec.AvailableIPs {
			r, err := ipaddr.ParseRange(text)
			if err != nil {
				failed = append(failed, app.Refuse(app.ReasonPoolInvalid, "the spec of pool %s cannot be used: %v",
					from.Name, err).WithHint("correct it: bcsnetctl pool edit %s", from.Name))
				continue
			}
			out = append(out, ipaddr.FormatRange(r))
		}
		return out, failed.OrNil()
	}
	have := resource.SetOfEntries(from.Spec.AvailableIPs)
	for _, e := range v.part {
		if lacks := ipaddr.Subtract(ipaddr.SetOf(e.IPRange), have); len(lacks.Ranges()) > 0 {
			failed = append(failed, app.Refuse(app.ReasonPoolInvalid, "pool %s does not have %s", from.Name,
				resource.Spell(lacks)).WithHint("see its addresses: bcsnetctl pool describe %s", from.Name))
		}
		out = append(out, ipaddr.FormatRange(e.IPRange))
	}
	return out, failed.OrNil()
}

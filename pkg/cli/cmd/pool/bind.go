package pool

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// poolBind binds a pool to namespaces by their names, or unbinds it. It gives them blocks of a split pool, or takes
// blocks back.
type poolBind struct {
	*app.App
	output     printer.Output
	pool       string
	namespaces []string
	unbind     bool
	// blocks is the minimum number of blocks for each namespace. which is the block of --block.
	blocks int
	block  string
	which  netip.Prefix
	chosen func(flag string) bool
}

func newBind(s *app.App) *cobra.Command {
	v := &poolBind{App: s}
	cmd := v.command(&cobra.Command{
		Use: "bind POOL --namespace NAMESPACE", Short: "Bind a pool to namespaces",
		Long: `Bind a pool to namespaces, by their names. They then draw only from the pools
that are bound to them, and the pool serves only them and the namespaces that
its selector matches. Addresses in use stay as they are. The command shows the
effect on the chains of namespaces; bcsnetctl explain namespace shows a chain.
You may bind a namespace that does not exist yet.

If the pool is split into blocks (blockSize), each namespace gets a block at
once, unless it has one: --blocks says how many it gets, --block which. The
block is created as for the first pod of the namespace, so that firewalls can
know it before. A pool with autoAssign is also bound to the namespaces, like any
pool. A pool without it assigns blocks only by this command, and its namespaces
do not change. With -o the blocks of the namespaces are printed.`,
		Example: `  bcsnetctl pool bind blue --namespace payments
  bcsnetctl pool bind blue --namespace payments,orders --dry-run=server
  bcsnetctl pool bind tenants --namespace payments --blocks 2
  bcsnetctl pool bind tenants --namespace payments --block 10.32.4.64/27`,
		ValidArgsFunction: resource.CompletePoolFirst(s, nil),
	})
	cmd.Flags().IntVar(&v.blocks, "blocks", 1,
		"how many blocks of a split pool each namespace gets, at least")
	cmd.Flags().StringVar(&v.block, "block", "", "this block, as a `CIDR`, and no other")
	app.Complete(cmd, "blocks")
	app.Complete(cmd, "block")
	app.CompleteWith(cmd, "namespace", resource.CompleteNamespaces(s))
	return cmd
}

func newUnbind(s *app.App) *cobra.Command {
	v := &poolBind{App: s, unbind: true}
	cmd := v.command(&cobra.Command{
		Use: "unbind POOL --namespace NAMESPACE", Short: "End that a pool is bound to namespaces",
		Long: `End that a pool is bound to namespaces by their names. Addresses in use stay as
they are. A pool that is no longer bound to a namespace joins the default chain,
unless it has default: false; a namespace without its own pools draws from the
default chain. The command reports both.

If the pool is split into blocks, the blocks of the namespaces are returned, or
the one of --block: they are deleted if nobody has an address in them and none
is reserved or cooling. For the others the command names the obstacles, and
exits with 1. Nobody gets a block before it is deleted, some sixteen seconds
later. With -o the returned blocks are printed.`,
		Example: `  bcsnetctl pool unbind blue --namespace payments
  bcsnetctl pool unbind blue --namespace payments,orders --dry-run=client
  bcsnetctl pool unbind tenants --namespace payments --block 10.32.4.64/27`,
		ValidArgsFunction: resource.CompletePoolFirst(s, nil),
	})
	cmd.Flags().StringVar(&v.block, "block", "", "this block of a pool that is split, as a `CIDR`, and no other")
	app.CompleteWith(cmd, "block", resource.CompleteBlocks(s))
	app.CompleteWith(cmd, "namespace", resource.CompleteBound(s))
	return cmd
}

func (v *poolBind) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = app.Takes(1, 1), app.Runs(v)
	v.chosen = cmd.Flags().Changed
	cmd.Flags().StringSliceVarP(&v.namespaces, "namespace", "n", nil,
		"`NAMESPACES`, with commas between; repeatable (required)")
	v.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
	return cmd
}

func (v *poolBind) Complete(args []string) error {
	v.pool = args[0]
	return nil
}

func (v *poolBind) Validate() error {
	if len(v.namespaces) == 0 {
		verb := "bind"
		if v.unbind {
			verb = "unbind"
		}
		return app.Usagef("%s pool %s needs --namespace", v.Name, verb)
	}
	for _, ns := range v.namespaces {
		if problems := validation.ValidateNamespaceName(ns, false); len(problems) > 0 {
			return app.Usagef("%q cannot be the name of a namespace: %s", ns, strings.Join(problems, "; "))
		}
	}
	v.namespaces = app.SortedOnce(v.namespaces)
	if err := v.checkBlocks(); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *poolBind) Run(ctx context.Context) error {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	p, err := api.Get(ctx, v.pool)
	if err != nil {
		return err
	}
	switch isBlock, err := v.isBlock(ctx, api, p); {
	case err != nil:
		return err
	case isBlock:
		return v.ofBlock(p)
	case p.Spec.BlockSize > 0 && v.unbind:
		return v.handBack(ctx, api, p)
	case p.Spec.BlockSize > 0:
		return v.give(ctx, api, p)
	case v.chosen("block") || v.chosen("blocks"):
		return app.Refuse(app.ReasonPoolInvalid, "pool %s is not split into blocks", v.pool).
			WithHint("only a pool with blockSize has blocks; see: bcsnetctl pool describe %s", v.pool)
	}
	edited, err := v.bindNames(ctx, api, v.namespaces)
	if err != nil {
		return err
	}
	return v.output.Object(v.Out, edited.Stored)
}

// bindNames adds namespaces to the spec of the pool, or removes them.
func (v *poolBind) bindNames(ctx context.Context, api *resource.Pools, namespaces []string) (resource.Pool, error) {
	var before resource.Pool
	var changed, same []string
	edited, err := api.Edit(ctx, v.pool, func(p resource.Pool) (map[string]any, error) {
		before, changed, same = p, nil, nil
		list := slices.Clone(p.Spec.Namespaces)
		for _, ns := range namespaces {
			if at := slices.Index(list, ns); at >= 0 != v.unbind {
				same = append(same, ns)
				continue
			} else if v.unbind {
				list = slices.Delete(list, at, at+1)
			} else {
				list = append(list, ns)
			}
			changed = append(changed, ns)
		}
		switch {
		case len(changed) == 0:
			return nil, nil
		case len(list) == 0:
			return map[string]any{"namespaces": nil}, nil
		}
		return map[string]any{"namespaces": resource.Values(list)}, nil
	})
	if err != nil {
		return edited, err
	}
	return edited, v.report(ctx, api, before, edited, changed, same)
}

// report prints what was done, and the effect on the chains of namespaces.
func (v *poolBind) report(
	ctx context.Context, api *resource.Pools, before, after resource.Pool, changed, same []string,
) error {
	if len(same) > 0 {
		word := "bound to pool %s already: %s"
		if v.unbind {
			word = "not bound to pool %s by name: %s"
		}
		v.Say.Note(word, v.pool, strings.Join(same, ", "))
	}
	labels, err := resource.LabelsOfNamespaces(ctx, v.App)
	if err != nil {
		return err
	}
	v.warnAbout(after, labels, same)
	if len(changed) == 0 {
		return nil
	}
	if v.unbind {
		v.Say.Done("pool %s no longer bound to %s", v.pool, app.Those("namespace", changed))
	} else {
		v.Say.Done("pool %s bound to %s", v.pool, app.Those("namespace", changed))
	}
	all, err := api.List(ctx)
	if err != nil {
		return err
	}
	var others []ipam.Pool
	for _, p := range all {
		if p.Name != v.pool {
			others = append(others, store.Pool(p.BCSNetPool))
		}
	}
	held, err := resource.HeldLeases(ctx, v.App, resource.LeaseQuery{Pool: v.pool, Status: lease.Active.String()},
		func(lease.Lease) bool { return true })
	if err != nil {
		return err
	}
	sayEffects(v.App, chainEffectsOf(store.Pool(before.BCSNetPool), store.Pool(after.BCSNetPool), others, labels,
		held).say())
	return nil
}

// warnAbout warns of namespaces that do not exist, and of those that stay bound by their labels.
func (v *poolBind) warnAbout(after resource.Pool, labels map[string]map[string]string, same []string) {
	var missing, still []string
	selector := store.Pool(after.BCSNetPool).NamespaceSelector
	for _, ns := range v.namespaces {
		of, exists := labels[ns]
		switch {
		case labels == nil:
		case !exists && !v.unbind && !slices.Contains(same, ns):
			missing = append(missing, ns)
		case exists && v.unbind && selector != nil && selector.Matches(of):
			still = append(still, ns)
		}
	}
	if len(missing) > 0 {
		v.Say.Warn("%s %s %s not exist yet", humanize.OneOr(len(missing), "namespace", "namespaces"),
			humanize.List(missing), humanize.OneOr(len(missing), "does", "do"))
	}
	if len(still) > 0 {
		v.Say.Warn("%s %s %s bound to pool %s: its selector %s matches",
			humanize.OneOr(len(still), "namespace", "namespaces"),
			humanize.List(still), humanize.OneOr(len(still), "stays", "stay"), v.pool, selector)
	}
}

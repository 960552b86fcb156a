package pool

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// handBack unbinds a split pool from the namespaces and deletes their empty blocks. An ADD that comes meanwhile still
// gets its address: the deletion of the block waits for it, as with any pool.
func (v *poolBind) handBack(ctx context.Context, api *resource.Pools, p resource.Pool) error {
	a, asking, stop, err := v.allocator(ctx)
	if err != nil {
		return err
	}
	defer stop()
	var named []string
	for _, ns := range v.namespaces {
		if slices.Contains(p.Spec.Namespaces, ns) {
			named = append(named, ns)
		}
	}
	if len(named) > 0 && !v.which.IsValid() {
		if p, err = v.bindNames(ctx, api, named); err != nil {
			return err
		}
	}
	idle := map[string]bool{}
	for _, b := range a.Index.Pools.IdleBlocks(a.Leases.Now()) {
		idle[b.Block] = true
	}
	gone, stay := []resource.Pool{}, 0
	for _, ns := range v.namespaces {
		own := v.chosenOf(a.Index.Pools.OwnBlocks(v.pool, ns))
		if len(own) == 0 && (v.which.IsValid() || !slices.Contains(named, ns)) {
			v.Say.Note("%s", v.nothingOf(ns))
		}
		for _, name := range own {
			if !idle[name] {
				stay++
				v.Say.Warn("block %s of namespace %s stays: %s", name, ns, inTheWay(a.Index, name, a.Leases.Now()))
				continue
			}
			b, err := v.deleteBlock(asking, api, name, ns)
			if err != nil {
				return err
			}
			gone = append(gone, b)
			v.Say.Done("block %s (%s) of namespace %s handed back", name, b.Spec.AvailableIPs[0], ns)
		}
	}
	if err := v.sayHandedBack(ctx, api, p, gone); err != nil {
		return err
	}
	if v.output.Given() {
		if err := v.output.List(v.Out, app.Map(gone, resource.Pool.Object)); err != nil {
			return err
		}
	}
	if stay > 0 {
		return app.Refuse(ipam.ReasonAddressInUse, "%s of pool %s %s not handed back",
			humanize.Plural(stay, "block"), v.pool,
			humanize.OneOr(stay, "was", "were")).
			WithHint("delete the pods that hold the addresses and run it again, or let a block drain: bcsnetctl pool " +
				"delete BLOCK")
	}
	return nil
}

// chosenOf returns the block of --block if the namespace has it, or all blocks without that flag.
func (v *poolBind) chosenOf(own []string) []string {
	if !v.which.IsValid() {
		return own
	}
	return slices.DeleteFunc(own, func(name string) bool { return name != block.Name(v.pool, v.which) })
}

func (v *poolBind) nothingOf(namespace string) string {
	if v.which.IsValid() {
		return fmt.Sprintf("namespace %s does not have block %s of pool %s", namespace, v.which, v.pool)
	}
	return fmt.Sprintf("pool %s is not bound to namespace %s by name, which has no block of it", v.pool, namespace)
}

// deleteBlock deletes a block of an owner, not a new pool of the same name.
func (v *poolBind) deleteBlock(ctx context.Context, api *resource.Pools, name, owner string) (resource.Pool, error) {
	b, err := api.Get(ctx, name)
	switch {
	case err != nil:
		return b, err
	case resource.OwnerOf(b) != owner:
		return b, app.Refuse(app.ReasonPoolInvalid, "block %s has become another's meanwhile", name).
			WithHint("run it again")
	case v.DryRun == app.DryRunClient:
		return b, nil
	}
	return b, resource.Delete(ctx, v.App, api.API, name, b.UID)
}

// inTheWay says why a block cannot be handed back.
func inTheWay(x *index.Index, block string, now time.Time) string {
	b, _ := x.Pools.Get(block)
	var names []string
	taken := func(l lease.Lease) bool { return b.Plan.CIDR.Contains(l.Addr) && l.State != lease.Available }
	for _, l := range x.Leases.Find(taken) {
		text := l.Addr.String()
		switch {
		case l.State == lease.Active:
			text += " (" + l.Where() + ")"
		case l.IsRetained():
			text += " (kept for claim " + l.Claim + ")"
		default:
			text += " (reserved)"
		}
		names = append(names, text)
	}
	switch c := x.Pools.Counts(block, now); {
	case len(names) > 0:
		return humanize.Plural(len(names), "address") + " in the way: " + humanize.List(names)
	case c.Cooling > 0:
		return fmt.Sprintf("%s cool down, the first until %s", humanize.Plural(c.Cooling, "address"),
			c.NextFree.Add(time.Second-1).UTC().Format(time.RFC3339))
	}
	return "it is not idle"
}

// sayHandedBack prints which namespaces will automatically get another block, and which ones return to the default
// chain.
func (v *poolBind) sayHandedBack(
	ctx context.Context, api *resource.Pools, p resource.Pool, gone []resource.Pool,
) error {
	if len(gone) == 0 {
		return nil
	}
	all, err := api.List(ctx)
	if err != nil {
		return err
	}
	labels, err := resource.LabelsOfNamespaces(ctx, v.App)
	if err != nil {
		return err
	}
	x := index.New()
	for ns, of := range labels {
		x.Pools.SetNamespace(ns, of)
	}
	was := map[string]bool{}
	for _, b := range gone {
		was[b.Name] = true
	}
	for _, o := range all {
		if o.Name != p.Name && !was[o.Name] {
			x.Pools.SetPool(store.Pool(o.BCSNetPool))
		}
	}
	x.Pools.SetPool(store.Pool(p.BCSNetPool))
	for _, ns := range v.namespaces {
		owned := func(b resource.Pool) bool { return resource.OwnerOf(b) == ns }
		if !slices.ContainsFunc(gone, owned) || len(x.Pools.OwnBlocks(v.pool, ns)) > 0 {
			continue
		}
		switch again := givesAgain(x, p, ns); {
		case again:
			v.Say.Warn("pool %s assigns namespace %s a block when it asks for an address again", p.Name, ns)
		case len(x.Pools.Own(ns, netip.Addr{})) == 0:
			v.Say.Note("  namespace %s joins the default chain once that is gone: it has no pools of its own", ns)
		}
	}
	return nil
}

// givesAgain reports whether a pool would automatically give another block to a namespace that has none.
func givesAgain(x *index.Index, p resource.Pool, namespace string) bool {
	return p.Spec.AutoAssign && slices.ContainsFunc(x.Pools.Chain(namespace, netip.Addr{}), func(c ipam.Place) bool {
		return c.Pool == p.Name && c.Tried
	})
}

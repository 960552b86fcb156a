package resource

import (
	"context"
	"maps"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Fit is a change of pools before it is stored: all pools before and after. All commands that change pools use it, to
// refuse in the same words a change that the controller would later report as a problem of a group.
type Fit struct {
	was, is map[string]ipam.Pool
	// next has the pools after the change, not arranged side by side.
	next []ipam.Pool
	// changed has the names of the changed pools.
	changed []string
}

// NewFit returns the change that replaces or adds the changed pools.
func NewFit(before []ipam.Pool, changed ...ipam.Pool) *Fit {
	f := &Fit{was: SideBySide(before), next: slices.Clone(before)}
	for _, c := range changed {
		f.changed = append(f.changed, c.Name)
		if i := slices.IndexFunc(f.next, func(p ipam.Pool) bool { return p.Name == c.Name }); i >= 0 {
			f.next[i] = c
		} else {
			f.next = append(f.next, c)
		}
	}
	f.is = SideBySide(f.next)
	return f
}

// Pool returns a pool as it serves before and after the change. A new one has a was without a name.
func (f *Fit) Pool(name string) (was, is ipam.Pool) { return f.was[name], f.is[name] }

// Children returns the names of a pool's groups and blocks after the change.
func (f *Fit) Children(name string) (all []string) {
	for child, p := range f.is {
		if p.Parent == name {
			all = append(all, child)
		}
	}
	return all
}

// Settings returns the settings of a pool's addresses before and after the change. A block has its parent's.
func (f *Fit) Settings(name string) (was, is lease.Settings) {
	of := func(all map[string]ipam.Pool) lease.Settings {
		p := all[name]
		if parent := all[p.Parent]; parent.BlockSize > 0 {
			p = parent
		}
		return p.Settings()
	}
	return of(f.was), of(f.is)
}

// Others returns the other pools after the change, not arranged side by side.
func (f *Fit) Others(name string) []ipam.Pool {
	return slices.DeleteFunc(slices.Clone(f.next), func(p ipam.Pool) bool { return p.Name == name })
}

// Owners returns the other pools that have some of a set of addresses after the change.
func (f *Fit) Owners(name string, some *netipx.IPSet) []Share { return Owners(f.is, name, some) }

// Shift has the addresses that another pool gains or loses by a change.
type Shift struct {
	Pool        string
	More, Fewer *netipx.IPSet
}

// Shifts returns what the unchanged parent and groups of a changed pool gain or lose, sorted by name.
func (f *Fit) Shifts(name string) (out []Shift) {
	p := f.is[name]
	for _, other := range slices.Sorted(maps.Keys(f.is)) {
		o, was := f.is[other], f.was[other]
		if other == name || other != p.Parent && o.Parent != name || slices.Contains(f.changed, other) {
			continue
		}
		s := Shift{other, ipaddr.Subtract(o.Usable(), was.Usable()), ipaddr.Subtract(was.Usable(), o.Usable())}
		if len(s.More.Ranges())+len(s.Fewer.Ranges()) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// Check refuses a change after which a pool no longer fits its parent or can no longer be split into its blocks, a new
// pool that does not fit, and a group whose new addresses are held for another pool. A pool that did not fit before may
// stay so.
func (f *Fit) Check(ctx context.Context, s *app.App) error {
	var failed app.Several
	for _, name := range f.changed {
		failed = append(failed, app.Flatten(f.CheckOne(ctx, s, name))...)
	}
	return failed.OrNil()
}

// CheckOne checks one changed pool and its children.
func (f *Fit) CheckOne(ctx context.Context, s *app.App, name string) error {
	if err := f.misfit(name); err != nil {
		return err
	}
	if err := f.unheeded(name); err != nil {
		return err
	}
	return f.held(ctx, s, name)
}

// unheeded refuses changed fields of a block that have no effect, because its parent has them.
func (f *Fit) unheeded(name string) error {
	p := f.is[name]
	parent, ok := f.is[p.Parent]
	if !ok || parent.BlockSize == 0 || !p.Valid() {
		return nil
	}
	fields := p.Unheeded(f.was[name], parent)
	if len(fields) == 0 {
		return nil
	}
	return app.Refuse(app.ReasonPoolInvalid,
		"pool %s is a block of pool %s, which has the %s for all of its blocks: %s "+
			"would do nothing here", name, parent.Name, humanize.OneOr(len(fields), "field", "fields"),
		humanize.List(fields)).
		WithHint("change that pool instead: bcsnetctl pool edit %s", parent.Name)
}

// spoilt reports whether a pool newly does not fit its parent.
func (f *Fit) spoilt(name string) bool { return f.is[name].BadParent && !f.was[name].BadParent }

// misfit returns the error if a pool, or another one because of it, no longer fits its parent, or if the pool cannot be
// split any more.
func (f *Fit) misfit(name string) error {
	p := f.is[name]
	if p.BlockSize > 0 && !p.Valid() && !p.BadParent && f.was[name].Valid() {
		return app.Refuse(app.ReasonPoolInvalid, "pool %s: %s", name, p.Problem).
			WithHint("see the blocks that there are: bcsnetctl pool tree")
	}
	if f.spoilt(name) {
		refusal := app.Refuse(app.ReasonInvalidParent, "pool %s: %s", name, p.Problem)
		if p.InOtherNetwork(f.is[p.Parent]) {
			return refusal.WithHint("leave its network out: it has the network of pool %s", p.Parent)
		}
		return refusal.WithHint("see what the parent has: bcsnetctl inspect pool %s", p.Parent)
	}
	var others []string
	for _, other := range slices.Sorted(maps.Keys(f.is)) {
		o := f.is[other]
		relative := o.Parent == name || p.Parent != "" && o.Parent == p.Parent
		if f.was[o.Parent].BlockSize > 0 {
			continue // a block has what its parent still has
		}
		if relative && !slices.Contains(f.changed, other) && f.spoilt(other) {
			others = append(others, other)
		}
	}
	if len(others) == 0 {
		return nil
	}
	first := f.is[others[0]]
	refusal := app.Refuse(app.ReasonInvalidParent,
		"pool %s cannot be changed in this way, because %s %s would lose addresses: %s",
		name, humanize.OneOr(len(others), "pool", "pools"), humanize.List(others), first.Problem)
	if first.InOtherNetwork(p) {
		return refusal.WithHint("take the network out of that one first, which then has its parent's: bcsnetctl pool "+
			"edit %s", first.Name)
	}
	return refusal.WithHint(
		"change that one first: bcsnetctl pool remove-ip %s ADDRESS...; or delete it: bcsnetctl pool delete %s",
		first.Name, first.Name)
}

// held refuses a group's new addresses if they are held for another pool, because the group would have to wait for
// them.
func (f *Fit) held(ctx context.Context, s *app.App, name string) error {
	p := f.is[name]
	if p.Parent == "" || p.Withheld == nil {
		return nil
	}
	takes := p.Withheld
	if was := f.was[name]; was.Withheld != nil {
		takes = ipaddr.Subtract(takes, was.Withheld)
	}
	if len(takes.Ranges()) == 0 {
		return nil
	}
	in, cools, err := f.obstacles(ctx, s, p, takes)
	switch {
	case err != nil:
		return err
	case len(in) > 0:
		var names, addrs []string
		for _, o := range in {
			names, addrs = append(names, o.String()), append(addrs, o.Lease.Addr.String())
		}
		return app.Refuse(ipam.ReasonAddressInUse, "pool %s cannot have %s: %s of pool %s %s held: %s", name,
			Spell(takes), humanize.Plural(len(in), "address"), in[0].Lease.Pool, humanize.OneOr(len(in), "is", "are"),
			humanize.List(names)).
			WithHint("leave them to pool %s, or give them up: bcsnetctl ip release %s", in[0].Lease.Pool,
				strings.Join(addrs[:min(len(addrs), explain.MaxNamed)], " "))
	case len(cools) > 0:
		last := slices.MaxFunc(cools, func(a, b ipam.Obstacle) int { return a.Cools.Compare(b.Cools) })
		s.Say.Note("  pool %s waits for %s that %s: %s", name, humanize.Plural(len(cools), "address"),
			humanize.OneOr(len(cools), "cools", "cool, the last one"), last)
	}
	return nil
}

// obstacles lists the leases that prevent the handover of addresses to a group: in has the held ones, cools those in
// cooldown.
func (f *Fit) obstacles(
	ctx context.Context, s *app.App, p ipam.Pool, takes *netipx.IPSet,
) (in, cools []ipam.Obstacle, err error) {
	leases, err := s.Leases()
	if err != nil {
		return nil, nil, err
	}
	err = leases.Each(ctx, "spec.pool!="+p.Name, func(l lease.Lease) error {
		if !takes.Contains(l.Addr) {
			return nil
		}
		switch o, is := p.Obstacle(l, f.was[l.Pool].Cooldown, s.Now()); {
		case is && o.Cools.IsZero():
			in = append(in, o)
		case is:
			cools = append(cools, o)
		}
		return nil
	})
	slices.SortFunc(in, func(a, b ipam.Obstacle) int { return a.Lease.Addr.Compare(b.Lease.Addr) })
	return in, cools, Explain(s, err)
}

// Overlaps refuses new addresses of a pool that its parent does not have, or another pool has.
func (f *Fit) Overlaps(name string) error {
	if err := f.misfit(name); err != nil {
		return err
	}
	p := f.is[name]
	added := ipaddr.Subtract(p.Usable(), f.was[name].Usable())
	if owners := Owners(f.is, name, added); len(owners) > 0 {
		o := owners[0]
		e := app.Refuse(app.ReasonPoolOverlap, "pool %s cannot have %s: pool %s owns %s", name, Spell(added),
			o.Pool.Name, Spell(o.Addrs))
		if o.Pool.Terminating {
			return e.WithHint("pool %s is being deleted; see what it waits for: bcsnetctl pool describe %s",
				o.Pool.Name, o.Pool.Name)
		}
		return e.WithHint("take it out there first: bcsnetctl pool remove-ip %s %s", o.Pool.Name, Arguments(o.Addrs))
	}
	return nil
}

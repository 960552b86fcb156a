package view

import (
	"context"
	"net/netip"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Inspection sorts the addresses of pools by state.
type Inspection struct {
	*app.App
	// Name is that of what is inspected.
	Name string
	// Head says what was inspected.
	Head Facts
	// all are the cluster's pools. index has them and their held addresses.
	all   []resource.Pool
	index *index.Index
	// Chosen names the pools to show.
	Chosen []string
	// whole: blocks count as their parents.
	whole bool
	// Mine reports whether an address belongs to the inspected host or namespace; nil means that all addresses count.
	Mine func(lease.Lease) bool
}

// Inspect reads the addresses of the pools that choose selects. name is the object to inspect.
func Inspect(
	ctx context.Context, s *app.App, name string, choose func(*Inspection, context.Context) error,
) (v *Inspection, err error) {
	v = &Inspection{App: s, Name: name}
	if v.all, err = resource.AllPools(ctx, s); err != nil {
		return nil, err
	}
	v.index = resource.IndexOf(s, v.all)
	if err := choose(v, ctx); err != nil {
		return nil, err
	}
	return v, resource.FillHeld(ctx, s, v.index, v.Chosen)
}

// Part has the addresses of one state. Always: it is shown even if it is empty.
type Part struct {
	State  string
	Set    *netipx.IPSet
	Always bool
}

// Parts returns the addresses of a pool by state, in display order.
func (o Ranges) Parts() []Part {
	return []Part{
		{"allocated", o.Active, true}, {"free", o.Free, !o.Beside && !o.Gives}, {"reserved", o.Reserved, true},
		{"cooling", o.Cooling, !o.Beside && !o.Gives}, {"others", o.Others, false},
	}
}

// stopped says why a pool allocates nothing; empty if it allocates.
func (v *Inspection) stopped(name string) string {
	switch p, _ := v.index.Pools.Get(name); {
	case !p.Valid():
		return "its spec cannot be used: " + p.Problem
	case p.Terminating:
		return "it is being deleted"
	case p.Cordoned:
		return "it is cordoned"
	default:
		return v.index.Pools.Rebuilding(name)
	}
}

// Ranges has the addresses of one pool by state.
type Ranges struct {
	Pool resource.Pool
	index.Ranges
	// Beside: the host or namespace has addresses of the pool, but no longer draws from it.
	Beside bool
	// Gives: the namespace may get blocks of the pool, and draws from these.
	Gives bool
	// Stopped says why the pool allocates nothing; empty if it allocates.
	Stopped string
}

// Pools returns the addresses of the chosen pools, and of other pools in which the host or namespace has addresses.
func (v *Inspection) Pools() (out []Ranges) {
	chosen := map[string]bool{}
	for _, name := range v.Chosen {
		chosen[name] = true
	}
	mine := map[string][2][]netip.Addr{} // allocated and reserved
	if v.Mine != nil {
		v.index.Leases.Each(func(l lease.Lease) {
			if l.State == lease.Available || !v.Mine(l) {
				return
			}
			name := l.Pool
			if p, _ := v.index.Pools.Get(name); v.whole && p.Block {
				name = p.Parent
			}
			of, at := mine[name], 0
			if l.State == lease.Reserved {
				at = 1
			}
			of[at] = append(of[at], l.Addr)
			mine[name] = of
		})
	}
	byName := map[string]resource.Pool{}
	names := v.Chosen
	for _, p := range v.all {
		byName[p.Name] = p
		if len(mine[p.Name][0])+len(mine[p.Name][1]) > 0 && !chosen[p.Name] {
			names = append(names, p.Name)
		}
	}
	for _, name := range names {
		one := Ranges{Pool: byName[name], Ranges: v.index.Pools.Ranges(name, v.Now()), Beside: !chosen[name]}
		if v.Mine != nil {
			one.Active, one.Reserved = ipaddr.SetOfAddrs(mine[name][0]...), ipaddr.SetOfAddrs(mine[name][1]...)
			one.Others = ipaddr.SetOf() // theirs are not the question
		}
		one.Gives = v.Mine != nil && !v.whole && one.Pool.Spec.BlockSize > 0
		if one.Beside || one.Gives {
			one.Free, one.Cooling = ipaddr.SetOf(), ipaddr.SetOf()
		}
		one.Stopped = v.stopped(name)
		out = append(out, one)
	}
	return out
}

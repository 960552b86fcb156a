package usage

import (
	"context"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// blocks has the blocks of the chosen pools by name. Their addresses count as their parent's.
type blocks map[string]resource.Pool

// choose reads the named pools, or all pools except blocks, and the blocks of these. side has all pools with the
// addresses that each serves.
func (v *usage) choose(
	ctx context.Context,
) (chosen []resource.Pool, side map[string]ipam.Pool, of blocks, err error) {
	if chosen, err = resource.ChoosePools(ctx, v.App, v.names); err != nil {
		return nil, nil, nil, err
	}
	all, split := chosen, []string{}
	if len(v.names) > 0 {
		if all, err = resource.AllPools(ctx, v.App); err != nil {
			return nil, nil, nil, err
		}
	}
	side = resource.SideBySide(resource.Given(all))
	for _, p := range chosen {
		if p.Spec.BlockSize > 0 {
			split = append(split, p.Name)
		}
	}
	of = blocks{}
	for _, p := range all {
		if slices.Contains(split, p.Spec.Parent) {
			of[p.Name] = p
		}
	}
	chosen = slices.DeleteFunc(chosen, func(p resource.Pool) bool {
		_, isBlock := of[p.Name]
		return isBlock
	})
	return chosen, side, of, nil
}

// parent returns the pool to which a lease counts.
func (b blocks) parent(l lease.Lease) string {
	if p, ok := b[l.Pool]; ok {
		return p.Spec.Parent
	}
	return l.Pool
}

// owned returns the blocks of each namespace, sorted.
func (b blocks) owned() map[string][]string {
	by := map[string][]string{}
	for name, p := range b {
		for _, ns := range p.Spec.Namespaces {
			by[ns] = append(by[ns], name)
		}
	}
	for _, names := range by {
		slices.Sort(names)
	}
	return by
}

func (b blocks) names() []string {
	var out []string
	for name := range b {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

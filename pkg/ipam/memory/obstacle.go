package memory

import "time"

// Kin returns the parent of a group and the other groups of it, as far as they are there.
func (x *Catalogue) Kin(p *PoolState) (all []*PoolState) {
	if parent := x.Roots[p.Parent]; parent != nil && parent != p {
		all = append(all, parent)
	}
	for name := range x.Children[p.Parent] {
		if q := x.Roots[name]; q != nil && q != p && name != p.Parent {
			all = append(all, q)
		}
	}
	return all
}

// CooldownOf returns the cooldown of a pool; none for one that is not there.
func (x *Catalogue) CooldownOf(pool string) time.Duration {
	if p := x.ByName[pool]; p != nil {
		return p.Cooldown
	}
	return 0
}

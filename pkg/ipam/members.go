package ipam

import "iter"

// poolMembers has the addresses by the pool that their objects name: every entry is a member of one pool.
type poolMembers struct{ byPool map[string]*members }

// members are the addresses whose object names one pool, whether or not that pool exists.
type members struct {
	records          map[*record]struct{}
	active, reserved int
	// retained are the reserved ones that are for a claim.
	retained int
	// draining are the held ones that are no longer in the pool's plan.
	draining map[*record]struct{}
}

// membersOf returns the members of a pool, and those of its blocks.
func (x *state) membersOf(p *poolState) iter.Seq[*members] {
	return func(yield func(*members) bool) {
		if m := x.members.byPool[p.Name]; m != nil && !yield(m) || p.split == nil {
			return
		}
		for _, b := range p.split.all() {
			if m := x.members.byPool[b.Name]; m != nil && !yield(m) {
				return
			}
		}
	}
}

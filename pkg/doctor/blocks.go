package doctor

import (
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// wholePools returns a snapshot without the blocks of split pools: all their checked fields come from their parents,
// and their leases count as the parents'. A pool that only looks like a block stays. blocks has the sorted block names
// of each parent.
func (s *Snapshot) wholePools() (whole *Snapshot, blocks map[string][]string) {
	split := map[string]bool{}
	for i := range s.Pools {
		split[s.Pools[i].Name] = s.Pools[i].BlockSize > 0
	}
	parents := map[string]string{}
	blocks = map[string][]string{}
	for i := range s.Pools {
		p := s.Pools[i].Pool
		if split[p.Parent] && block.IsName(p.Name, p.Parent, p.Plan.CIDR) && len(p.Namespaces) == 1 {
			parents[p.Name] = p.Parent
			blocks[p.Parent] = append(blocks[p.Parent], p.Name)
		}
	}
	if len(parents) == 0 {
		return s, nil
	}
	for _, names := range blocks {
		slices.Sort(names)
	}
	copied := *s
	whole = &copied
	whole.Pools = slices.DeleteFunc(slices.Clone(s.Pools), func(p Pool) bool { return parents[p.Name] != "" })
	whole.Leases = make([]lease.Lease, 0, len(s.Leases))
	for _, l := range s.Leases {
		if parent := parents[l.Pool]; parent != "" {
			l.Pool = parent
		}
		whole.Leases = append(whole.Leases, l)
	}
	return whole, blocks
}

package ipam

import (
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Capacity returns how many addresses a request that is ahead of all pods could draw from in all, taken or not, of the
// family of which there are more; for any of some namespaces. It saturates at 2^64-1. The pools are in order of their
// names.
func (x *Index) Capacity(w PickRequest, namespaces []string) (n uint64, pools []string) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	var by [2]uint64
	for _, w.Namespace = range namespaces {
		for p := range x.core.state.pools.fitting(w) {
			if !slices.Contains(pools, p.Name) {
				pools = append(pools, p.Name)
				by[p.Family()] = ipaddr.AddSaturated(by[p.Family()], p.canGive())
			}
		}
	}
	slices.Sort(pools)
	return max(by[ipaddr.IPv4], by[ipaddr.IPv6]), pools
}

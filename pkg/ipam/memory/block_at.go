package memory

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// BlockAt finds the block of some addresses, as Pools.BlockAt says.
func (x *Catalogue) BlockAt(addrs netip.Prefix) (parent string, block ipam.Pool, ok bool) {
	var best *PoolState
	var of uint64
	rank := -1
	for _, p := range x.Roots {
		if p.Split == nil || p.BlockSize != addrs.Bits() {
			continue
		}
		number, inside := p.Split.NumberOf(addrs.Addr())
		if !inside || p.Split.Prefix(number) != addrs {
			continue
		}
		is := 0
		_, exists := p.Split.Existing(number)
		switch {
		case exists:
			is = 2
		case !p.Split.IsVoid(number):
			is = 1
		}
		if is > rank || is == rank && Preference(p, best) < 0 {
			best, of, rank = p, number, is
		}
	}
	if best == nil {
		return "", ipam.Pool{}, false
	}
	if b, exists := best.Split.Existing(of); exists {
		block = b.Pool
	}
	return best.Name, block, true
}

package ipam

import "net/netip"

// BlockAt finds the block of some addresses: the pool that is split into such blocks there, and the block itself, where
// anybody has made it. ok is false where no pool has such a block. Where pools overlap, the one counts in which the
// block exists, or else one that serves addresses of it.
func (x *Pools) BlockAt(addrs netip.Prefix) (parent string, block Pool, ok bool) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.pools.blockAt(addrs)
}

// blockAt finds the block of some addresses, as Pools.BlockAt says.
func (x *catalogue) blockAt(addrs netip.Prefix) (parent string, block Pool, ok bool) {
	var best *poolState
	var of uint64
	rank := -1
	for _, p := range x.roots {
		if p.split == nil || p.BlockSize != addrs.Bits() {
			continue
		}
		number, inside := p.split.NumberOf(addrs.Addr())
		if !inside || p.split.Prefix(number) != addrs {
			continue
		}
		is := 0
		_, exists := p.split.Existing(number)
		switch {
		case exists:
			is = 2
		case !p.split.IsVoid(number):
			is = 1
		}
		if is > rank || is == rank && preference(p, best) < 0 {
			best, of, rank = p, number, is
		}
	}
	if best == nil {
		return "", Pool{}, false
	}
	if b, exists := best.split.Existing(of); exists {
		block = b.Pool
	}
	return best.Name, block, true
}

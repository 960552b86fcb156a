package index

import (
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
)

// BlockAt finds the block of some addresses: the pool that is split into such blocks there, and the block itself, where
// anybody has made it. ok is false if no pool has such a block. Where pools overlap, the one counts in which the
// block exists, or else one that serves addresses of it.
func (x *Pools) BlockAt(addrs netip.Prefix) (parent string, block ipam.Pool, ok bool) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Pools.BlockAt(addrs)
}

// Blocks counts the blocks of a pool; none for one that is not split.
func (x *Pools) Blocks(name string) block.Counts {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	if p := x.core.state.Pools.ByName[name]; p != nil && p.Split != nil {
		return p.Split.Counts()
	}
	return block.Counts{}
}

// IdleBlocks returns the blocks that nothing is in at a time, by name. Those whose leases were lost are none of them:
// it is not known what is in them. What the parent has shrunk away from is still a block that goes back. It looks at
// all blocks.
func (x *Pools) IdleBlocks(now time.Time) (idle []ipam.IdleBlock) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.Now = now.UnixNano()
	return x.core.state.IdleBlocks()
}

// OwnBlocks names the blocks of a pool that a namespace owns and that are not being deleted, in the order in which it
// draws from them.
func (x *Pools) OwnBlocks(pool, namespace string) (names []string) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Pools.OwnBlocks(pool, namespace)
}

// NextBlock returns the block that a namespace is to be given by hand, whether or not the pool gives blocks by itself:
// which, or, where that is the zero Prefix, the first one that it may have. Nobody knows the block before it is made.
func (x *Pools) NextBlock(pool, namespace string, which netip.Prefix) (ipam.Pool, *ipam.Refusal) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Pools.NextBlock(pool, namespace, which)
}

// BlocksOf names the blocks that exist of a pool, in address order; none for one that is not split.
func (x *Pools) BlocksOf(name string) (names []string) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Pools.BlocksOf(name)
}

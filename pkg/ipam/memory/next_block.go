package memory

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
)

// OwnBlocks names the blocks of a pool that a namespace owns, as Pools.OwnBlocks says.
func (x *Catalogue) OwnBlocks(pool, namespace string) (names []string) {
	p := x.ByName[pool]
	if p == nil || p.Split == nil {
		return nil
	}
	for _, b := range p.Split.Owns(namespace) {
		if !b.Given.Terminating {
			names = append(names, b.Name)
		}
	}
	return names
}

// NextBlock returns the block that a namespace is to be given by hand, as Pools.NextBlock says.
func (x *Catalogue) NextBlock(pool, namespace string, which netip.Prefix) (ipam.Pool, *ipam.Refusal) {
	p := x.ByName[pool]
	switch {
	case p == nil:
		return ipam.Pool{}, ipam.RefuseFacts(ipam.ReasonNotFound, explain.Facts{Kind: explain.NoSuchPool, Pool: pool})
	case !p.Serves() && p.Stop().Cause != explain.Cordoned: // whose blocks wait for nothing but its end
		return ipam.Pool{}, ipam.RefuseFacts(ipam.ReasonPoolCordoned, explain.Facts{Kind: explain.PoolStopped,
			Pool: pool,
			Stop: p.Stop()})
	case p.Split == nil:
		return ipam.Pool{}, ipam.Refuse(ipam.ReasonBadRequest, "pool %s is not split into blocks", pool).
			WithHint("blocks are of a pool that has blockSize; see: bcsnetctl pool describe %s", pool)
	}
	candidates := p.Split.Candidates(namespace)
	if which != (netip.Prefix{}) {
		number, refusal := x.blockNumber(p, namespace, which)
		if refusal != nil {
			return ipam.Pool{}, refusal
		}
		candidates = slices.Values([]uint64{number})
	}
	for number := range candidates {
		if b := x.Propose(p, number, namespace); b != nil {
			return b.Pool, nil
		}
	}
	return ipam.Pool{}, ipam.Refuse(ipam.ReasonNoFreeBlock, "pool %s has no block left for namespace %s: %s", pool,
		namespace,
		p.BlockState(namespace)).WithHint(
		"add addresses: bcsnetctl pool add-ip %s RANGE; see who has the blocks: bcsnetctl pool tree %s", pool, pool)
}

// blockNumber returns the number of a block that a namespace may be given.
func (x *Catalogue) blockNumber(p *PoolState, namespace string, which netip.Prefix) (uint64, *ipam.Refusal) {
	see := "see: bcsnetctl pool tree " + p.Name
	if which.Bits() != p.BlockSize || which.Addr().BitLen() != p.Split.First.BitLen() || which.Masked() != which {
		return 0, ipam.Refuse(ipam.ReasonBadRequest,
			"%s is not a block of pool %s: blocks have the length %d, such as %s", which,
			p.Name, p.BlockSize, netip.PrefixFrom(p.Split.First, p.BlockSize)).WithHint("%s", see)
	}
	number, ok := p.Split.NumberOf(which.Addr())
	if !ok || p.Split.IsVoid(number) && len(p.Split.HeldIn(number)) == 0 {
		return 0, ipam.Refuse(ipam.ReasonAddressNotInPool, "pool %s has no address in %s that it could allocate",
			p.Name, which).
			WithHint("add them: bcsnetctl pool add-ip %s %s", p.Name, netipx.RangeOfPrefix(which))
	}
	switch b, exists := p.Split.Existing(number); {
	case !exists:
	case b.Given.Terminating:
		return 0, ipam.Refuse(ipam.ReasonNoFreeBlock, "block %s of pool %s, which namespace %s has, is being deleted",
			which,
			p.Name, b.Owner()).WithHint("ask again once it is gone; see: bcsnetctl pool describe %s", b.Name)
	default:
		return 0, ipam.Refuse(ipam.ReasonNoFreeBlock, "block %s of pool %s is owned by namespace %s", which, p.Name,
			b.Owner()).
			WithHint("%s", see)
	}
	if !p.Split.Available(number, namespace) {
		return 0, ipam.Refuse(ipam.ReasonNoFreeBlock,
			"others than namespace %s have addresses in block %s of pool %s: %s",
			namespace, which, p.Name, holders(p.Split.HeldIn(number), namespace)).
			WithHint("take another block, or wait until they are given up; see: bcsnetctl ip list --pool %s", p.Name)
	}
	if name := block.Name(p.Name, which); x.ByName[name] != nil {
		return 0, ipam.Refuse(ipam.ReasonNoFreeBlock,
			"a pool has the name %s of the block, and is not the block: %s", name,
			x.ByName[name].Problem).WithHint("see: bcsnetctl pool describe %s", name)
	}
	return number, nil
}

// holders counts addresses by namespaces other than one, in words.
func holders(held map[string]int, but string) string {
	var all []string
	for _, ns := range slices.Sorted(maps.Keys(held)) {
		switch ns {
		case but:
		case "":
			all = append(all, fmt.Sprintf("owners in no namespace (%d)", held[ns]))
		default:
			all = append(all, fmt.Sprintf("%s (%d)", ns, held[ns]))
		}
	}
	return explain.FirstFew(all, "namespaces")
}

// BlockState counts the blocks of a pool for a namespace.
func (p *PoolState) BlockState(namespace string) *explain.BlockState {
	c := p.Split.Counts()
	return &explain.BlockState{
		Namespace: namespace, Has: len(p.Split.Owns(namespace)), Length: p.BlockSize, All: c.All, Owned: c.Owned,
		Held: c.Held, Void: c.Void, ByItself: p.AutoAssign,
	}
}

// BlocksOf names the blocks that exist of a pool, in address order.
func (x *Catalogue) BlocksOf(name string) (names []string) {
	p := x.ByName[name]
	if p == nil || p.Split == nil {
		return nil
	}
	blocks := maps.Collect(p.Split.All())
	for _, number := range slices.Sorted(maps.Keys(blocks)) {
		names = append(names, blocks[number].Name)
	}
	return names
}

package allocator

import (
	"context"
	"errors"
	"net/netip"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Stocker takes addresses and blocks before a pod asks for one.
type Stocker struct {
	engine *engine
	writer *writer
	blocks *blockMaker
}

// GiveBlock makes a block of a pool for a namespace before any of its pods asks, as commands and ConfigMaps say: which,
// or, where that is the zero Prefix, the first one that the namespace may have. It does so by the steps of an ADD. Of
// two that give one block at once, one is refused, or given the next. marks change the object of a block that is made.
func (s *Stocker) GiveBlock(
	ctx context.Context, pool, namespace string, which netip.Prefix, marks ...func(*v1.BCSNetPool),
) (ipam.Pool, error) {
	for range maxAttempts {
		b, refusal := s.engine.index.Pools.NextBlock(pool, namespace, which)
		if refusal != nil {
			return b, refusal
		}
		err := s.blocks.make(ctx, ipam.Pick{Pool: b, NewBlock: true}, marks...)
		known, ok := s.engine.index.Pools.Get(b.Name)
		switch {
		case err == nil ||
			errors.Is(err, errStale) && ok && known.Block && known.Owner() == namespace && !known.Terminating:
			return known, nil // also where its parent is cordoned, so that it allocates nothing yet
		case !errors.Is(err, errStale):
			return b, err
		}
	}
	return ipam.Pool{}, ipam.Refuse(ipam.ReasonUnavailable, "others took the blocks of pool %s %d times in a row", pool,
		maxAttempts).WithHint("ask again")
}

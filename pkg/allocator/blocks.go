package allocator

import (
	"context"
	"errors"
	"net/netip"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// makeBlocks makes the blocks that picked addresses lie in and that nobody has made yet. Where one has become another
// namespace's it returns errStale: the index knows it from then on, and the next attempt tries the next block.
func (a *Allocator) makeBlocks(ctx context.Context, picks []ipam.Pick) error {
	for _, p := range picks {
		if err := a.makeBlock(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// GiveBlock makes a block of a pool for a namespace before any of its pods asks, as commands and ConfigMaps say: which,
// or, where that is the zero Prefix, the first one that the namespace may have. It does so by the steps of an ADD. Of
// two that give one block at once, one is refused, or given the next. marks change the object of a block that is made.
func (a *Allocator) GiveBlock(
	ctx context.Context, pool, namespace string, which netip.Prefix, marks ...func(*v1.BCSNetPool),
) (ipam.Pool, error) {
	for range maxAttempts {
		b, refusal := a.index.Pools.NextBlock(pool, namespace, which)
		if refusal != nil {
			return b, refusal
		}
		err := a.makeBlock(ctx, ipam.Pick{Pool: b, NewBlock: true}, marks...)
		known, ok := a.index.Pools.Get(b.Name)
		switch {
		case err == nil ||
			errors.Is(err, errStale) && ok && known.Block && known.Owner() == namespace && !known.Terminating:
			return known, nil // also where its parent is cordoned, so that it hands out nothing yet
		case !errors.Is(err, errStale):
			return b, err
		}
	}
	return ipam.Pool{}, ipam.Refuse(ipam.ReasonUnavailable, "others took the blocks of pool %s %d times in a row", pool,
		maxAttempts).WithHint("ask again")
}

// makeBlock creates the object of a block: the API server decides whose the block is, as whoever creates its object has
// it. Requests of one namespace come together, as those of a new one do, and one of them asks for all. A replica that
// ends before it answers has made the block all the same; whoever asks next finds it by its name.
func (a *Allocator) makeBlock(ctx context.Context, p ipam.Pick, marks ...func(*v1.BCSNetPool)) error {
	if !p.NewBlock {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	made := a.blocks.DoChan(p.Pool.Name+" "+p.Pool.Owner(), func() (any, error) {
		if known, ok := a.index.Pools.Get(p.Pool.Name); ok {
			return known, nil // made between the choice and this turn
		}
		sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.WriteTimeout)
		defer cancel()
		add, done := a.index.Pools.MakePool(p.Pool.Name)
		defer done()
		stored, err := a.leases.CreateBlock(sending, p.Pool, marks...)
		if err != nil {
			return nil, err
		}
		add(stored)
		return stored, nil
	})
	select {
	case <-ctx.Done():
		return unavailable(ctx.Err())
	case r := <-made:
		return a.blockMade(p, r.Err)
	}
}

// blockMade says what became of the block that a request needs.
func (a *Allocator) blockMade(p ipam.Pick, err error) error {
	switch {
	case errors.Is(err, store.ErrConflict):
		return errStale
	case errors.Is(err, store.ErrUnknown):
		return ipam.Refuse(ipam.ReasonOutcomeUnknown, "the API server did not say whether it stored block %s: %v",
			p.Pool.Name, err).WithHint("ask again: the block is found by its name")
	case err != nil:
		return writeFailed(err)
	}
	known, _ := a.index.Pools.Get(p.Pool.Name)
	if !known.Block || known.Owner() != p.Pool.Owner() || !known.Serves() {
		return errStale
	}
	return nil
}

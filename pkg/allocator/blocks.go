package allocator

import (
	"context"
	"errors"

	"golang.org/x/sync/singleflight"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// blockMaker makes blocks. It has one request at a time make a block, for all that need it.
type blockMaker struct {
	engine *engine
	group  singleflight.Group
}

// makeAll makes the blocks that picked addresses lie in and that nobody has made yet. Where one has become another
// namespace's it returns errStale: the index knows it from then on, and the next attempt tries the next block.
func (b *blockMaker) makeAll(ctx context.Context, picks []ipam.Pick) error {
	for _, p := range picks {
		if err := b.make(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// make creates the object of a block: the API server decides whose the block is, as whoever creates its object has
// it. Requests of one namespace come together, as those of a new one do, and one of them asks for all. A replica that
// ends before it answers has made the block all the same; whoever asks next finds it by its name.
func (b *blockMaker) make(ctx context.Context, p ipam.Pick, marks ...func(*v1.BCSNetPool)) error {
	if !p.NewBlock {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return unavailable(err)
	}
	made := b.group.DoChan(p.Pool.Name+" "+p.Pool.Owner(), func() (any, error) {
		if known, ok := b.engine.index.Pools.Get(p.Pool.Name); ok {
			return known, nil // made between the choice and this turn
		}
		sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.WriteTimeout)
		defer cancel()
		add, done := b.engine.index.Pools.MakePool(p.Pool.Name)
		defer done()
		stored, err := b.engine.leases.CreateBlock(sending, p.Pool, marks...)
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
		return b.made(p, r.Err)
	}
}

// made says what became of the block that a request needs.
func (b *blockMaker) made(p ipam.Pick, err error) error {
	switch {
	case errors.Is(err, store.ErrConflict):
		return errStale
	case errors.Is(err, store.ErrUnknown):
		return ipam.Refuse(ipam.ReasonOutcomeUnknown, "the API server did not say whether it stored block %s: %v",
			p.Pool.Name, err).WithHint("ask again: the block is found by its name")
	case err != nil:
		return writeFailed(err)
	}
	known, _ := b.engine.index.Pools.Get(p.Pool.Name)
	if !known.Block || known.Owner() != p.Pool.Owner() || !known.Serves() {
		return errStale
	}
	return nil
}

package allocator

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Preallocate takes addresses until a claim has as many as it is to have, and keeps them for it. It takes what there
// is where that is too few. What it took stays taken also with an error; asking again takes the rest: a *ipam.Refusal
// of the reasons Unavailable, OutcomeUnknown or Forbidden, else one of the API server.
//
// Several callers may do so for one claim, also in several processes: they look for the same addresses in the same
// order, and what one of them took too many when all writes before its own were seen, it gives back at once, also when
// its time has run out. Nobody can see a write that is still on its way: what one took that was killed arrives later
// than all others have looked. TakenFor shows the leader which these may be.
func (s *Stocker) Preallocate(ctx context.Context, r Preallocation) (Stock, error) {
	release, err := s.engine.locks.acquire(ctx, r.key())
	if err != nil {
		return s.stock(r), unavailable(err)
	}
	defer release()
	if _, err := s.writer.resolveUnknown(ctx, r.key()); err != nil {
		return s.stock(r), err
	}
	for conflicts := 0; conflicts < maxAttempts; {
		picks, stock := s.pickLacking(r)
		if len(picks) == 0 {
			return stock, nil
		}
		taken, err := s.setAside(ctx, r, picks)
		void := false
		if len(taken) > 0 { // also where other writes failed: whoever asks again finds nothing lacking
			err = cmp.Or(err, s.giveBackSurplus(ctx, r, taken))
		}
		if err == nil && len(taken) > 0 {
			void, err = s.giveBackVoid(ctx, r, taken)
		}
		switch {
		case err != nil || void:
			return s.stock(r), err
		case len(taken) < len(picks):
			conflicts++
		}
	}
	return s.stock(r), ipam.Refuse(ipam.ReasonUnavailable, "other writers were faster %d times", maxAttempts).
		WithHint("ask again")
}

// stock counts what a claim has, where it is not known what it lacks.
func (s *Stocker) stock(r Preallocation) Stock {
	return Stock{Has: s.engine.index.Leases.ClaimUsage(r.Claim).Most()}
}

// setAside writes picked addresses as kept for the claim. It returns those of which nobody else was faster.
func (s *Stocker) setAside(ctx context.Context, r Preallocation, picks []ipam.Pick) (taken []lease.Lease, err error) {
	change := lease.Change{
		Verb: lease.VerbReserve, By: "claim " + r.Claim, Reason: preallocatedFor + strconv.Itoa(r.all()),
	}
	var mu sync.Mutex
	var group errgroup.Group
	for _, p := range picks {
		group.Go(func() error {
			if err := s.blocks.make(ctx, p); err != nil {
				if s.engine.index.Forget(p.Current.Addr); errors.Is(err, errStale) {
					return nil
				}
				return err
			}
			next, ok := lease.ReserveFor(p.Current, p.Pool.Params(), r.retention(), s.engine.leases.Now(), change)
			stored, err := s.writer.write(ctx, r.key(), p.Current, next, ok)
			switch {
			case errors.Is(err, errStale):
				return nil
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				taken = append(taken, stored)
			}
			return err
		})
	}
	err = group.Wait()
	return taken, err
}

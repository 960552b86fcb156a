package allocator

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Allocate gives the addresses of an interface: those that it holds already, else free ones. It is
// idempotent: the same request gets the same answer. A *ipam.Refusal says why there is none.
func (a *Adder) Allocate(ctx context.Context, r Request) ([]Address, error) {
	t := a.begin(ctx, r)
	seen := a.engine.index.Feed.Seen()
	end := a.engine.leases.Begin(ctx, store.StageLock)
	release, err := a.engine.locks.acquire(ctx, t.key())
	end(err)
	if err != nil {
		return nil, unavailable(err)
	}
	defer release()
	if err := a.resolve(ctx, t); err != nil {
		return nil, err
	}
	if t.prefer, err = a.writer.resolveUnknown(ctx, t.key()); err != nil {
		return nil, err
	}
	if err := a.attempts(ctx, t); err != nil {
		return nil, err
	}
	return a.addresses(t, seen), nil
}

// attempts takes a request through the phases, and begins anew after errStale. It waits for the watch, once, before it
// believes that a pool is full; an object asks again by itself.
func (a *Adder) attempts(ctx context.Context, t *attempt) error {
	caughtUp := t.ForObject
	for range maxAttempts {
		if a.engine.overtaken(t) {
			return deleted(t.Request)
		}
		seen := a.engine.index.Feed.Seen()
		err := a.phases(ctx, t)
		if err != nil && !errors.Is(err, errStale) && !caughtUp {
			caughtUp = true
			err = a.sure(ctx, err, seen)
		}
		if !errors.Is(err, errStale) {
			return err
		}
		a.again.Add(1)
	}
	return ipam.Refuse(ipam.ReasonUnavailable, "other writers were faster %d times in a row", maxAttempts).
		WithHint("ask again")
}

// phases runs the phases of the protocol once.
func (a *Adder) phases(ctx context.Context, t *attempt) error {
	for _, phase := range [...]func(context.Context, *attempt) error{
		a.lookup, a.handover, a.pick, a.commit, a.confirm, a.conclude,
	} {
		if err := phase(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// addresses adds to the leases of an answer what their holder was given. A lease that is not newer than what the watch
// had seen when the request came was held before.
func (a *Adder) addresses(t *attempt, seen uint64) []Address {
	slices.SortFunc(t.held, func(x, y lease.Lease) int {
		return cmp.Or(cmp.Compare(t.families.Of(ipaddr.FamilyOf(x.Addr)), t.families.Of(ipaddr.FamilyOf(y.Addr))),
			x.Addr.Compare(y.Addr))
	})
	out := make([]Address, 0, len(t.held))
	for _, l := range t.held {
		p, _ := a.engine.index.Pools.Get(l.Pool)
		settings := a.answers.settings(t, l, p)
		if given, known := l.Given.Settings(settings); known {
			settings = given
		}
		out = append(out, Address{Lease: l, Settings: settings, Repeated: l.Version <= seen, Migration: l.Other != nil})
	}
	return out
}

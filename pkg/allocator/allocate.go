package allocator

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// maxAttempts bounds how often one request looks again after another writer was faster.
const maxAttempts = 64

// Allocate gives the addresses of an interface: those that it holds already, else free ones. It is
// idempotent: the same request gets the same answer. A *ipam.Refusal says why there is none.
func (a *Allocator) Allocate(ctx context.Context, r Request) ([]Address, error) {
	t := a.begin(ctx, r)
	seen := a.index.Feed.Seen()
	end := a.leases.Begin(ctx, store.StageLock)
	release, err := a.locks.acquire(ctx, t.key())
	end(err)
	if err != nil {
		return nil, unavailable(err)
	}
	defer release()
	if err := a.resolve(ctx, t); err != nil {
		return nil, err
	}
	if t.prefer, err = a.resolveUnknown(ctx, t.key()); err != nil {
		return nil, err
	}
	if err := a.attempts(ctx, t); err != nil {
		return nil, err
	}
	return a.addresses(t, seen), nil
}

// errStale reports that the index showed something else than the API server has. The index has been mended: another
// attempt decides anew.
var errStale = errors.New("the index was behind")

// attempts takes a request through the phases, and begins anew after errStale. It waits for the watch, once, before it
// believes that a pool is full.
func (a *Allocator) attempts(ctx context.Context, t *attempt) error {
	caughtUp := false
	for range maxAttempts {
		if a.overtaken(t) {
			return deleted(t.Request)
		}
		seen := a.index.Feed.Seen()
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
func (a *Allocator) phases(ctx context.Context, t *attempt) error {
	for _, phase := range [...]func(*Allocator, context.Context, *attempt) error{
		(*Allocator).lookup,
		(*Allocator).handover,
		(*Allocator).pick,
		(*Allocator).commit,
		(*Allocator).confirm,
		(*Allocator).conclude,
	} {
		if err := phase(a, ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// addresses adds what the pools say now to the leases of an answer. A lease that is no newer than what the watch had
// seen when the request came was held before.
func (a *Allocator) addresses(t *attempt, seen uint64) []Address {
	slices.SortFunc(t.held, func(x, y lease.Lease) int {
		return cmp.Or(cmp.Compare(t.families.Of(ipaddr.FamilyOf(x.Addr)), t.families.Of(ipaddr.FamilyOf(y.Addr))),
			x.Addr.Compare(y.Addr))
	})
	out := make([]Address, 0, len(t.held))
	for _, l := range t.held {
		p, _ := a.index.Pools.Get(l.Pool)
		if g := t.constraints.Gateway; g.IsValid() && netip.PrefixFrom(l.Addr, l.Bits).Contains(g) {
			l.Gateway = g
		}
		out = append(out, Address{Lease: l, Link: p.Link, Repeated: l.Version <= seen, Migration: l.Other != nil})
	}
	return out
}

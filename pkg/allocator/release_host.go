package allocator

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// parallelWrites bounds how many addresses are released at once, of a host or of deleted containers.
const parallelWrites = 16

// ReleaseHost frees every address that is held on a host, on the word of an operator that the machine is off. It reads
// the addresses from the API server. It returns the released addresses also with an error; another call releases the
// rest. began is the time of the operator's request by the API server's clock; zero means now. Addresses that the host
// gets more than two seconds after began stay with it: a delayed release takes nothing from a machine that is on again.
// c names the operator.
func ReleaseHost(
	ctx context.Context, leases *store.Client, host netip.Addr, began time.Time, c lease.Change,
) ([]lease.Lease, error) {
	if began.IsZero() {
		began = leases.Now()
	}
	all, err := OnHost(ctx, leases, host)
	if err != nil {
		return nil, readFailed(err)
	}
	return ReleaseHeld(ctx, leases, host, all, began, c)
}

// OnHost reads the addresses of which an attachment is on a host, seen from there.
func OnHost(ctx context.Context, leases *store.Client, host netip.Addr) (all []lease.Lease, err error) {
	if all, err = leases.List(ctx, "status.host="+host.String()); err != nil {
		return nil, err
	}
	migrating, err := leases.Migrating(ctx, func(l lease.Lease) bool { return l.Host == host })
	if err != nil {
		return nil, err
	}
	for _, l := range migrating {
		if !slices.ContainsFunc(all, func(o lease.Lease) bool { return o.Addr == l.Addr }) {
			all = append(all, l)
		}
	}
	return all, nil
}

// HeldOn reports whether a lease is one that ReleaseHost of a host, asked for at a time, frees.
func HeldOn(l lease.Lease, host netip.Addr, began time.Time) bool {
	return l.State == lease.Active && l.Host == host && !l.Updated.After(began.Add(clockError))
}

// ReleaseHeld does what ReleaseHost does, for callers that have listed the leases already. Each lease counts as it is
// when it is written. The released ones are returned even with an error about the others.
func ReleaseHeld(
	ctx context.Context, leases *store.Client, host netip.Addr, all []lease.Lease, began time.Time, c lease.Change,
) ([]lease.Lease, error) {
	var mu sync.Mutex
	var released []lease.Lease
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for _, l := range all {
		l, held := l.From(func(l lease.Lease) bool { return HeldOn(l, host, began) })
		if !held {
			continue
		}
		group.Go(func() error {
			gone, err := ReleaseLease(ctx, leases, l, c, func(now lease.Lease) bool { return HeldOn(now, host, began) })
			if err != nil {
				return fmt.Errorf("releasing %s: %w", l.Addr, err)
			}
			if gone {
				mu.Lock()
				released = append(released, l)
				mu.Unlock()
			}
			return nil
		})
	}
	err := group.Wait()
	return byAddr(released), err
}

package allocator

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Release gives up what a container or an owner holds. One that holds nothing is no error: the DEL is remembered,
// so that an ADD that it overtook does not bring an address back. The answer is what was released.
func (a *Allocator) Release(ctx context.Context, r ReleaseRequest) ([]lease.Lease, error) {
	if err := ownerOfHost(r.Owner, r.OnHosts); err != nil {
		return nil, err
	}
	a.releases.Add(1)
	defer a.releases.Add(-1)
	began := a.began(&r)
	a.tombstones.put(r, began)
	var released []lease.Lease
	var later *lease.Lease
	still := func(l lease.Lease) bool {
		if r.names(l) && r.before(l) && !l.Rebuilt() {
			later = &l
		}
		return r.matches(l)
	}
	for _, l := range a.releasable(r) {
		if !still(l) {
			continue
		}
		if kept, err := a.keptByPod(ctx, l); err != nil || kept {
			if err != nil {
				return released, err
			}
			continue
		}
		gone, err := a.releaseOne(ctx, l, still)
		if err != nil {
			return released, err
		}
		if gone {
			released = append(released, l)
		}
	}
	if later != nil {
		return released, outdated(*later)
	}
	return released, nil
}

// began returns when a DEL began, and bounds its StartedAt by what can be true.
func (a *Allocator) began(r *ReleaseRequest) moment {
	began := a.moment(r.Host, r.StartedAt, r.ArrivedAt)
	if !r.StartedAt.IsZero() {
		r.StartedAt = began.counts()
	}
	return began
}

// Frees reports whether a DEL frees an address by the index, without a question to the API server. What a pod holds
// without a container takes such a question, and is no part of it.
func (a *Allocator) Frees(r ReleaseRequest) bool {
	a.began(&r)
	return slices.ContainsFunc(a.releasable(r), func(l lease.Lease) bool {
		return r.matches(l) && (l.ContainerID != "" || l.Owner != "")
	})
}

// outdated refuses a DEL of what its container or owner holds since later than the DEL began. Silence would leave the
// address with nobody who gives it up, should the clock of the host have been set back.
func outdated(l lease.Lease) *ipam.Refusal {
	return ipam.Refuse(ipam.ReasonReleaseOutdated,
		"%s asked for address %s at %s, after this release began by its startedAt",
		l.Who(), l.Addr, l.StartedAt.Format(time.RFC3339Nano)).
		WithHint("if it is to be released, ask again; if the clock of host %s was set back, "+
			"that helps once it has caught up, after five minutes at most", l.Host)
}

// keptByPod reports whether a lease that names no container stays although a container of its pod was deleted:
// such a lease was rebuilt from its pod, and the container may be an earlier one. It goes when the pod ends.
func (a *Allocator) keptByPod(ctx context.Context, l lease.Lease) (bool, error) {
	if l.ContainerID != "" || l.Owner != "" {
		return false, nil
	}
	pod, err := a.pods.FindLive(ctx, l.Namespace, l.PodName, l.PodUID)
	switch {
	case errors.Is(err, workload.ErrNotFound):
		return false, nil
	case err != nil:
		return false, readFailed(err)
	}
	return !pod.Ended && !pod.Deleting, nil
}

// releasable returns the leases of the index that a DEL is about.
func (a *Allocator) releasable(r ReleaseRequest) []lease.Lease {
	var all []lease.Lease
	if r.ContainerID != "" {
		all = a.index.Leases.ByContainer(r.ContainerID, r.IfName)
	}
	for _, l := range a.index.Leases.ByAttachment(lease.Holder{PodUID: r.PodUID, Owner: r.Owner, IfName: r.IfName}) {
		if !slices.ContainsFunc(all, func(o lease.Lease) bool { return o.Addr == l.Addr }) {
			all = append(all, l)
		}
	}
	return slices.DeleteFunc(all, func(l lease.Lease) bool {
		if p, ok := a.index.Pools.Get(l.Pool); ok && r.Network != "" && p.Network != r.Network {
			return true
		}
		return !r.names(l)
	})
}

// matches reports whether a lease is one that the DEL is about, and not of an ADD that came after it.
func (r ReleaseRequest) matches(l lease.Lease) bool { return r.names(l) && !r.before(l) }

// before reports whether the DEL began before the ADD of a lease.
func (r ReleaseRequest) before(l lease.Lease) bool {
	return !r.StartedAt.IsZero() && l.StartedAt.After(r.StartedAt)
}

// names reports whether a lease is of the holder of the DEL: by container ID; by pod UID only where the
// lease has no container; by owner, unless the two name different containers; never by pod name. A lease of a host that
// the caller does not act for is nobody's here.
func (r ReleaseRequest) names(l lease.Lease) bool {
	switch {
	case l.State != lease.Active, r.IfName != "" && l.IfName != r.IfName:
		return false
	case !within(r.OnHosts, l.Host), r.Namespace != "" && l.Namespace != r.Namespace:
		return false
	case r.ContainerID != "" && l.ContainerID == r.ContainerID:
		return true
	case r.Owner != "":
		return l.Owner == r.Owner && (r.ContainerID == "" || l.ContainerID == "")
	default:
		return r.PodUID != "" && l.PodUID == r.PodUID && l.ContainerID == ""
	}
}

// ReleaseAddress gives up one address if the given container or owner holds it. An address that nobody
// holds is no error (released false). One on another host than those of onHosts is held by somebody else; nil is for
// all hosts.
func (a *Allocator) ReleaseAddress(
	ctx context.Context, addr netip.Addr, containerID, owner string, onHosts []netip.Addr,
) (l lease.Lease, released bool, err error) {
	if err := ownerOfHost(owner, onHosts); err != nil {
		return l, false, err
	}
	l, err = a.leases.Get(ctx, addr)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if _, known := a.index.Pools.PoolOf(addr); !known {
			return l, false, ipam.RefuseFacts(ipam.ReasonAddressNotInPool,
				explain.Facts{Kind: explain.AddressInNoPool, Address: addr})
		}
		return l, false, nil
	case err != nil:
		return l, false, readFailed(err)
	case l.State == lease.Available:
		return l, false, nil
	}
	mine := heldFor(containerID, owner, onHosts)
	from, ok := l.From(mine)
	if !ok {
		return l, false, notHeld(l)
	}
	released, err = a.releaseOne(ctx, from, mine)
	return from, released, err
}

// heldFor returns what reports whether a container or an owner has a lease on one of the hosts.
func heldFor(containerID, owner string, onHosts []netip.Addr) func(lease.Lease) bool {
	return func(l lease.Lease) bool {
		return l.State == lease.Active && within(onHosts, l.Host) &&
			(containerID != "" && l.ContainerID == containerID || owner != "" && l.Owner == owner)
	}
}

// FreesAddress reports by the index whether ReleaseAddress frees an address.
func (a *Allocator) FreesAddress(addr netip.Addr, containerID, owner string, onHosts []netip.Addr) bool {
	l, ok := a.index.Leases.Get(addr)
	if !ok {
		return false
	}
	_, ok = l.From(heldFor(containerID, owner, onHosts))
	return ok
}

// notHeld refuses a change of an address by somebody who does not hold it.
func notHeld(l lease.Lease) *ipam.Refusal {
	switch {
	case l.IsQuarantined():
		return ipam.Refuse(ipam.ReasonAddressNotHeld, "address %s is quarantined until %s, nobody holds it", l.Addr,
			l.Conflict.Until.Format(time.RFC3339))
	case l.State == lease.Reserved:
		return ipam.Refuse(ipam.ReasonAddressNotHeld, "address %s is reserved, nobody holds it", l.Addr)
	case l.State == lease.Available:
		return ipam.Refuse(ipam.ReasonAddressNotHeld, "address %s is not in use, nobody holds it", l.Addr)
	}
	who := l.Who()
	if l.ContainerID != "" {
		who += " (container " + l.ContainerID + ")"
	}
	heldBy := func(who string) *ipam.Refusal {
		return ipam.Refuse(ipam.ReasonAddressNotHeld, "address %s is held by %s", l.Addr, who)
	}
	return heldBy(who).Naming(l.Holder, heldBy)
}

func (a *Allocator) releaseOne(ctx context.Context, l lease.Lease, still func(lease.Lease) bool) (bool, error) {
	return ReleaseLease(ctx, a.leases, l, lease.Change{}, still)
}

// ReleaseLease makes the holder of an address give it up by compare-and-swap. The address is Available then, or
// Reserved for the claim that keeps it. Of two attachments those end for which still returns true. When somebody else
// changed it in the meantime, ReleaseLease reads it again, and leaves it alone if still returns false: then released is
// false. c goes into the history of the address; it is zero for a holder that gives its address up.
func ReleaseLease(
	ctx context.Context, leases *store.Client, l lease.Lease, c lease.Change, still func(lease.Lease) bool,
) (released bool, err error) {
	return giveUp(ctx, leases, l, c, lease.Release, still)
}

// FreeLease does what ReleaseLease does, for an address that no claim keeps from then on.
func FreeLease(
	ctx context.Context, leases *store.Client, l lease.Lease, c lease.Change, still func(lease.Lease) bool,
) (released bool, err error) {
	return giveUp(ctx, leases, l, c, lease.Free, still)
}

// giveUp changes a lease until it is stored, or the lease is nobody's any more, or still does not hold.
func giveUp(
	ctx context.Context, leases *store.Client, l lease.Lease, c lease.Change,
	end func(lease.Lease, time.Time, lease.Change) (lease.Lease, bool), still func(lease.Lease) bool,
) (released bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, unavailable(err)
	}
	stored, released, err := leases.Update(ctx, l,
		func(l lease.Lease) (lease.Lease, bool) { return lease.EndWhere(l, still, leases.Now(), c, end) },
		func(now lease.Lease) bool {
			_, some := now.From(still)
			return now.Version != 0 && some
		})
	if err != nil {
		return false, swapFailed(l.Addr, err)
	}
	if released {
		letGo(ctx, leases, stored)
	}
	return released, nil
}

// letGo takes the finalizer off an object that was deleted while it was held, once it is free. Where that
// fails the controller does it: the address is free all the same.
func letGo(ctx context.Context, leases *store.Client, l lease.Lease) {
	if l.State != lease.Available {
		return
	}
	if next, changed := lease.Free(l, leases.Now(), lease.Change{}); changed {
		_, _ = leases.Write(ctx, next)
	}
}

// parallelWrites bounds how many addresses are released at once, of a host or of deleted containers.
const parallelWrites = 16

// clockError bounds how far apart two processes may take the API server's time to be: it sends its time in whole
// seconds.
const clockError = 2 * time.Second

// ReleaseHost frees every address that is held on a host, on the word of an operator that the machine is off. It reads
// the addresses from the API server. What it released comes back also with an error; asking again does the rest. began
// is when it was asked for, by the API server's time; zero stands for the present. What the host takes more than two
// seconds later stays with it, so that a release which was stuck on its way takes nothing from a machine that is on
// again. c says on whose word.
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

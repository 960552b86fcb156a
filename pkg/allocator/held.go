package allocator

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// held returns what an attachment holds: the addresses of one request. Where the index shows more, two replicas served it
// at once: every replica picks the same ones, and releases the others.
func (a *Allocator) held(ctx context.Context, h ipam.Holder) (held []ipam.Lease, err error) {
	seen := a.index.Seen() // before the picture is taken
	all := a.index.ByAttachment(h)
	if h.ContainerID != "" {
		for _, l := range a.index.ByContainer(h.ContainerID, h.IfName) {
			if l.State == ipam.Active && !sameRequester(l.Holder, h) {
				return nil, ipam.Refuse(ipam.ReasonContainerHoldsOther, "container %s holds address %s for %s, the request is for %s",
					h.ContainerID, l.Addr, l.Who(), h.Who())
			}
			if !slices.ContainsFunc(all, func(o ipam.Lease) bool { return o.Addr == l.Addr }) {
				all = append(all, l)
			}
		}
	}
	all = slices.DeleteFunc(all, func(l ipam.Lease) bool { return l.State != ipam.Active })
	if all, err = a.ofOnePod(ctx, h, all); err != nil {
		return nil, err
	}
	held, over := oneSet(all, a.network)
	if len(over) > 0 {
		if err := a.catchUp(ctx, seen, all); err != nil {
			return nil, err
		}
		if over, err = a.withoutEarlierPods(ctx, held, over); err != nil {
			return nil, err
		}
		if len(over) > 0 {
			if err := a.releaseOthers(ctx, held, over); err != nil {
				return nil, err
			}
		}
	}
	return a.withoutReported(h, held), nil
}

// withoutReported takes out the leases that were made again from the report of the pod, where a container by its ID has
// all that one request gets: what its pod reported is of another request, or of another interface. They are left alone,
// as the pod may have them, and they are no reason to refuse what the container was told.
func (a *Allocator) withoutReported(h ipam.Holder, held []ipam.Lease) []ipam.Lease {
	own := slices.DeleteFunc(slices.Clone(held), func(l ipam.Lease) bool { return l.ContainerID == "" || l.ContainerID != h.ContainerID })
	if len(own) == len(held) || !complete(own) || alone(own[0]) && paired(own[0], held, a.network) {
		return held
	}
	return slices.DeleteFunc(slices.Clone(held), ipam.Lease.Rebuilt)
}

// network returns the network of a pool.
func (a *Allocator) network(pool string) string {
	p, _ := a.index.Pool(pool)
	return p.Network
}

// sameRequester reports whether a lease of a container is for the pod or owner that now asks in the
// container's name. The UIDs may differ: one of them can be out of date.
func sameRequester(l, h ipam.Holder) bool {
	return l.Owner == h.Owner && (h.Owner != "" || l.PodName == "" || l.Namespace == h.Namespace && l.PodName == h.PodName)
}

// ofOnePod takes out the leases of other containers that belong to another pod. A cache that lags may have taken a
// request that names no UID for one of the earlier pod of its name. Its container may have been served under the right
// UID before.
func (a *Allocator) ofOnePod(ctx context.Context, h ipam.Holder, all []ipam.Lease) ([]ipam.Lease, error) {
	others := func(l ipam.Lease) bool { return l.ContainerID != h.ContainerID }
	served := func(l ipam.Lease) bool { return !others(l) && l.PodUID != h.PodUID }
	if h.ContainerID == "" || h.Owner != "" || h.UIDNamed || failpoint.Broken("uid") ||
		!slices.ContainsFunc(all, served) || !slices.ContainsFunc(all, others) {
		return all, nil
	}
	uid, err := a.liveUID(ctx, h.Namespace, h.PodName)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(l ipam.Lease) bool { return others(l) && l.PodUID != uid }), nil
}

// withoutEarlierPods takes out of the leases to be released those that another pod may have. Of two containers of a pod
// the newer one has its address. Where that one's request named no UID, a cache that lags may have taken it for the
// pod before, whose container runs on for a while after a deletion by force.
func (a *Allocator) withoutEarlierPods(ctx context.Context, keep, over []ipam.Lease) ([]ipam.Lease, error) {
	sure := func(l ipam.Lease) bool {
		return l.Owner != "" || l.PodName == "" || !slices.ContainsFunc(keep, func(k ipam.Lease) bool {
			return k.ContainerID != l.ContainerID && !k.UIDNamed
		})
	}
	i := slices.IndexFunc(over, func(l ipam.Lease) bool { return !sure(l) })
	if i < 0 || failpoint.Broken("uid") {
		return over, nil
	}
	uid, err := a.liveUID(ctx, over[i].Namespace, over[i].PodName)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(over), func(l ipam.Lease) bool { return !sure(l) && l.PodUID != uid }), nil
}

// liveUID asks the API server for the UID of the pod of a name; empty when there is none.
func (a *Allocator) liveUID(ctx context.Context, namespace, name string) (string, error) {
	pod, err := a.pods.FindLive(ctx, namespace, name, "")
	if err != nil && !errors.Is(err, workload.ErrNotFound) {
		return "", readFailed(err)
	}
	return pod.UID, nil
}

// releaseOthers releases the leases that an attachment has beyond those that it keeps. One read of each of the latter
// makes sure first that it is really held: an attachment whose other leases have gone keeps all that it has.
func (a *Allocator) releaseOthers(ctx context.Context, keep, over []ipam.Lease) error {
	for _, l := range keep {
		if _, err := a.unchanged(ctx, l); err != nil {
			return err
		}
	}
	for _, l := range over {
		a.log.Info("releasing the second address of one attachment", "address", l.Addr.String(), "kept", addresses(keep), "container", l.ContainerID)
		if _, err := FreeLease(ctx, a.leases, l, ipam.Change{}, func(now ipam.Lease) bool {
			return now.State == ipam.Active && now.ContainerID == l.ContainerID && now.IfName == l.IfName && now.Owner == l.Owner &&
				now.StartedAt.Equal(l.StartedAt)
		}); err != nil {
			return err
		}
	}
	return nil
}

// catchUp waits until the watch has delivered leases, and returns errStale if it had to wait: seen is the version up to
// which the watch had delivered everything when they were looked up. Own writes and reads are in the index before what
// others wrote earlier. A part of the set that was whole first may be missing there, so that the set that came second
// seems to be the only whole one.
func (a *Allocator) catchUp(ctx context.Context, seen uint64, ls []ipam.Lease) error {
	var version uint64
	for _, l := range ls {
		version = max(version, l.Version)
	}
	if version <= seen {
		return nil
	}
	if err := a.index.WaitSeen(ctx, version); err != nil {
		return ipam.Refuse(ipam.ReasonOutcomeUnknown, "container %s holds several addresses, and the watch did not deliver all in time", ls[0].ContainerID).
			WithHint("ask again: the same request gets those that it was told first")
	}
	return errStale
}

func addresses(ls []ipam.Lease) (out []string) {
	for _, l := range ls {
		out = append(out, l.Addr.String())
	}
	return out
}

// complete reports whether what is held is all that its holder was given.
func complete(held []ipam.Lease) bool { return len(held) > 0 && len(held) >= held[0].SetSize }

// holdsOther refuses a request for something else than what is held.
func holdsOther(r Request, held []ipam.Lease, x *ipam.Index) *ipam.Refusal {
	for _, l := range held {
		for _, want := range r.Addrs {
			missing := !slices.ContainsFunc(held, func(o ipam.Lease) bool { return o.Addr == want })
			if missing && (complete(held) || want.Is4() == l.Addr.Is4()) {
				return ipam.Refuse(ipam.ReasonContainerHoldsOther, "%s holds address %s, the request is for %s", r.who(), l.Addr, want).
					WithHint("release %s first, or ask without an address", l.Addr)
			}
		}
		if r.Pool != "" && l.Pool != r.Pool {
			return ipam.Refuse(ipam.ReasonContainerHoldsOther, "%s holds address %s of pool %s, the request is for pool %s",
				r.who(), l.Addr, l.Pool, r.Pool).WithHint("release %s first, or ask in another name", l.Addr)
		}
		if p, ok := x.Pool(l.Pool); ok && r.Network != "" && p.Network != r.Network {
			return ipam.Refuse(ipam.ReasonContainerHoldsOther, "%s holds address %s of pool %s, the request is for network %s",
				r.who(), l.Addr, l.Pool, r.Network).WithHint("release %s first, or use another ifName", l.Addr)
		}
	}
	return nil
}

// verifyHeld makes sure by one read that a lease is still the request's. A newer container of the same pod takes the lease
// over by one write; together is how many it takes over.
func (a *Allocator) verifyHeld(ctx context.Context, r Request, h *ipam.Holder, l ipam.Lease, together int) (ipam.Lease, error) {
	mine := l.ContainerID == r.ContainerID || r.ContainerID == "" // an owner need not name its container
	if !mine && r.olderThan(l) {
		if slices.Contains(l.Superseded, r.ContainerID) {
			return l, superseded(r, l) // for good
		}
		// The request's container may have the address since then, and be older only by the clock of the replica that
		// served the one before.
		if _, err := a.unchanged(ctx, l); err != nil {
			return l, err
		}
		return l, superseded(r, l)
	}
	if r.Owner == "" && !failpoint.Broken("uid") && (mine && l.PodUID != h.PodUID || !mine && r.PodUID == "") {
		// Either one of two UIDs is out of date, or the address is about to move to another container on
		// the word of the cache, whose pod may have been replaced by another of its name.
		pod, err := a.pods.FindLive(ctx, r.Namespace, r.PodName, r.PodUID)
		if err := unfit(r, pod, err); err != nil {
			return l, err
		}
		if h.PodUID, h.Termination = pod.UID, pod.LongTermination(); !mine && l.PodUID != h.PodUID {
			return l, errStale // the lease of another pod
		}
	}
	if mine && l.PodUID == h.PodUID {
		return a.unchanged(ctx, l)
	}
	bound := *h
	if bound.SetSize, bound.Slot = l.SetSize, l.Slot; together > 1 {
		bound.SetSize = max(l.SetSize, together)
	}
	sticky := r.constraints.RetentionFor(l)
	if r.refused != nil {
		sticky = l.Retention
	}
	next, ok := ipam.Bind(l, l.Params, bound, sticky, a.leases.Now())
	if !ok {
		return l, ipam.Refuse(ipam.ReasonAddressInUse, "the object of address %s, which %s holds, is being deleted", l.Addr, r.who()).
			WithHint("ask again in a moment")
	}
	if err := ctx.Err(); err != nil {
		return l, unavailable(err)
	}
	stored, err := a.leases.Swap(ctx, l, next)
	if errors.Is(err, store.ErrUnknown) {
		a.doubt(r.key(), l)
	}
	if err != nil {
		return l, swapFailed(l.Addr, err)
	}
	return stored, nil
}

// olderThan reports whether a lease is for a newer container of the request's pod than the request's.
func (r Request) olderThan(l ipam.Lease) bool {
	return !failpoint.Broken("supersession") && (slices.Contains(l.Superseded, r.ContainerID) || l.StartedAt.After(r.StartedAt))
}

func superseded(r Request, l ipam.Lease) *ipam.Refusal {
	refusal := ipam.Refuse(ipam.ReasonContainerSuperseded, "container %s holds address %s of %s in place of container %s",
		l.ContainerID, l.Addr, r.who(), r.ContainerID)
	if slices.Contains(l.Superseded, r.ContainerID) {
		return refusal
	}
	return refusal.WithHint("if container %s is the newer one, the clock of host %s was set back: ask again until it has caught up, five minutes at most", r.ContainerID, r.Host)
}

// unchanged reads a lease that the index shows as the request's, and returns errStale if it is not.
func (a *Allocator) unchanged(ctx context.Context, l ipam.Lease) (ipam.Lease, error) {
	live, err := a.leases.Get(ctx, l.Addr)
	switch {
	case errors.Is(err, store.ErrNotFound):
		a.index.WroteDelete(l.Addr, l.Version, l.Epoch)
		return l, errStale
	case err != nil:
		return l, readFailed(err)
	}
	if live.State == ipam.Active && live.ContainerID == l.ContainerID && live.IfName == l.IfName && live.SameAttachment(l.Holder) {
		return live, nil
	}
	a.index.Wrote(live)
	return l, errStale
}

// confirm waits until the watch has delivered the writes of the request and looks the attachment up again: whatever
// another replica did before them is visible now.
func (a *Allocator) confirm(ctx context.Context, h ipam.Holder, leases []ipam.Lease) ([]ipam.Lease, error) {
	if failpoint.Broken("write") || failpoint.Broken("confirm") {
		return leases, nil
	}
	var version uint64
	for _, l := range leases {
		version = max(version, l.Version)
	}
	end := a.leases.Begin(ctx, store.StageConfirm)
	err := a.index.WaitSeen(ctx, version)
	end(err)
	if err != nil {
		return nil, ipam.Refuse(ipam.ReasonOutcomeUnknown, "address %s is stored, but the watch did not deliver it in time", leases[0].Addr).
			WithHint("ask again: the same request gets it")
	}
	held, err := a.held(ctx, h)
	if err != nil {
		return nil, err
	}
	same := slices.EqualFunc(byAddr(held), byAddr(leases), func(x, y ipam.Lease) bool {
		return x.Addr == y.Addr && x.ContainerID == y.ContainerID
	})
	if !same {
		return nil, errStale
	}
	return held, nil
}

func byAddr(ls []ipam.Lease) []ipam.Lease {
	return slices.SortedFunc(slices.Values(ls), func(a, b ipam.Lease) int { return a.Addr.Compare(b.Addr) })
}

// settleDoubts finds out what became of writes of unknown outcome for an attachment, or a claim. One that was
// not stored may still arrive; asking for the same address again makes sure that only one of the two
// writes can.
func (a *Allocator) settleDoubts(ctx context.Context, key string) (prefer []netip.Addr, err error) {
	doubts := a.index.Unknown(key)
	for _, addr := range inOrder(doubts) {
		live, err := a.leases.Get(ctx, addr)
		switch {
		case errors.Is(err, store.ErrNotFound):
			prefer = append(prefer, addr)
		case err != nil:
			return nil, readFailed(err) // all stay in doubt: the next call prefers them, too
		case live.State == ipam.Available:
			prefer = append(prefer, addr)
			fallthrough
		default:
			a.index.Wrote(live)
		}
	}
	for addr := range doubts {
		a.index.Forget(addr)
	}
	return prefer, nil
}

package allocator

import (
	"context"
	"errors"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// held returns what an attachment holds: the addresses of one request. Where the index shows more, two replicas served
// it at once: every replica picks the same ones, and releases the others.
func (a *Allocator) held(ctx context.Context, h lease.Holder) (held []lease.Lease, err error) {
	seen := a.index.Feed.Seen() // before the picture is taken
	all := a.index.Leases.ByAttachment(h)
	if h.ContainerID != "" {
		for _, l := range a.index.Leases.ByContainer(h.ContainerID, h.IfName) {
			if l.State == lease.Active && !sameRequester(l.Holder, h) {
				return nil, ipam.Refuse(ipam.ReasonContainerHoldsOther,
					"container %s holds address %s for %s, the request is for %s",
					h.ContainerID, l.Addr, l.Who(), h.Who()).Naming(l.Holder, func(other string) *ipam.Refusal {
					return ipam.Refuse(ipam.ReasonContainerHoldsOther, "container %s is of %s, the request is for %s",
						h.ContainerID, other, h.Who())
				})
			}
			if !slices.ContainsFunc(all, func(o lease.Lease) bool { return o.Addr == l.Addr }) {
				all = append(all, l)
			}
		}
	}
	all = slices.DeleteFunc(all, func(l lease.Lease) bool { return l.State != lease.Active })
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
// as the pod may have them, and they are no reason to refuse what the container was given.
func (a *Allocator) withoutReported(h lease.Holder, held []lease.Lease) []lease.Lease {
	own := slices.DeleteFunc(slices.Clone(held),
		func(l lease.Lease) bool { return l.ContainerID == "" || l.ContainerID != h.ContainerID })
	if len(own) == len(held) || !complete(own) || alone(own[0]) && paired(own[0], held, a.network) {
		return held
	}
	return slices.DeleteFunc(slices.Clone(held), lease.Lease.Rebuilt)
}

// network returns the network of a pool.
func (a *Allocator) network(pool string) string {
	p, _ := a.index.Pools.Get(pool)
	return p.Network
}

// sameRequester reports whether a lease of a container is for the pod or owner that now asks in the
// container's name. The UIDs may differ: one of them can be out of date.
func sameRequester(l, h lease.Holder) bool {
	return l.Owner == h.Owner && (h.Owner != "" || l.PodName == "" || l.Namespace == h.Namespace &&
		l.PodName == h.PodName)
}

// ofOnePod takes out the leases of other containers that belong to another pod. A cache that lags may have taken a
// request that names no UID for one of the earlier pod of its name. Its container may have been served under the right
// UID before.
func (a *Allocator) ofOnePod(ctx context.Context, h lease.Holder, all []lease.Lease) ([]lease.Lease, error) {
	others := func(l lease.Lease) bool { return l.ContainerID != h.ContainerID }
	served := func(l lease.Lease) bool { return !others(l) && l.PodUID != h.PodUID }
	if h.ContainerID == "" || h.Owner != "" || h.UIDNamed || failpoint.Broken("uid") ||
		!slices.ContainsFunc(all, served) || !slices.ContainsFunc(all, others) {
		return all, nil
	}
	uid, err := a.liveUID(ctx, h.Namespace, h.PodName)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(l lease.Lease) bool { return others(l) && l.PodUID != uid }), nil
}

// withoutEarlierPods takes out of the leases to be released those that another pod may have. Of two containers of a pod
// the newer one has its address. Where that one's request named no UID, a cache that lags may have taken it for the
// pod before, whose container runs on for a while after a deletion by force.
func (a *Allocator) withoutEarlierPods(ctx context.Context, keep, over []lease.Lease) ([]lease.Lease, error) {
	sure := func(l lease.Lease) bool {
		return l.Owner != "" || l.PodName == "" || !slices.ContainsFunc(keep, func(k lease.Lease) bool {
			return k.ContainerID != l.ContainerID && !k.UIDNamed
		})
	}
	i := slices.IndexFunc(over, func(l lease.Lease) bool { return !sure(l) })
	if i < 0 || failpoint.Broken("uid") {
		return over, nil
	}
	uid, err := a.liveUID(ctx, over[i].Namespace, over[i].PodName)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(over), func(l lease.Lease) bool { return !sure(l) && l.PodUID != uid }), nil
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
func (a *Allocator) releaseOthers(ctx context.Context, keep, over []lease.Lease) error {
	for _, l := range keep {
		if _, err := a.unchanged(ctx, l); err != nil {
			return err
		}
	}
	for _, l := range over {
		a.log.Info("releasing the second address of one attachment", "address", l.Addr.String(), "kept",
			addresses(keep), "container", l.ContainerID)
		if _, err := FreeLease(ctx, a.leases, l, lease.Change{}, func(now lease.Lease) bool {
			return now.State == lease.Active && now.ContainerID == l.ContainerID && now.IfName == l.IfName &&
				now.Owner == l.Owner && now.StartedAt.Equal(l.StartedAt)
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
func (a *Allocator) catchUp(ctx context.Context, seen uint64, ls []lease.Lease) error {
	var version uint64
	for _, l := range ls {
		version = max(version, l.Version)
	}
	if version <= seen {
		return nil
	}
	if err := a.index.Feed.WaitSeen(ctx, version); err != nil {
		return ipam.Refuse(ipam.ReasonOutcomeUnknown,
			"container %s holds several addresses, and the watch did not deliver all in time", ls[0].ContainerID).
			WithHint("ask again: the same request gets those that it was told first")
	}
	return errStale
}

func addresses(ls []lease.Lease) (out []string) {
	for _, l := range ls {
		out = append(out, l.Addr.String())
	}
	return out
}

// complete reports whether what is held is all that its holder was given.
func complete(held []lease.Lease) bool { return len(held) > 0 && len(held) >= held[0].SetSize }

package allocator

import (
	"context"
	"errors"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// holdings finds what attachments hold, and releases what one of them holds beyond one request.
type holdings struct{ engine *engine }

// of returns what an attachment holds: the addresses of one request. Where the index shows more, two replicas served
// it at once: every replica picks the same ones, and releases the others.
func (s *holdings) of(ctx context.Context, h lease.Holder) (held []lease.Lease, err error) {
	seen := s.engine.index.Feed.Seen() // before the picture is taken
	all := s.engine.index.Leases.ByAttachment(h)
	if h.ContainerID != "" {
		for _, l := range s.engine.index.Leases.ByContainer(h.ContainerID, h.IfName) {
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
	held, surplus, err := rivalry{
		holder: h, network: s.engine.network,
		liveUID:  func(namespace, name string) (string, error) { return s.liveUID(ctx, namespace, name) },
		caughtUp: func(all []lease.Lease) error { return s.catchUp(ctx, seen, all) },
	}.decide(all)
	if err != nil {
		return nil, err
	}
	if len(surplus) > 0 {
		if err := s.releaseSurplus(ctx, held, surplus); err != nil {
			return nil, err
		}
	}
	return withoutReported(h, held, s.engine.network), nil
}

// liveUID asks the API server for the UID of the pod of a name; empty when there is none.
func (s *holdings) liveUID(ctx context.Context, namespace, name string) (string, error) {
	pod, err := s.engine.pods.FindLive(ctx, namespace, name, "")
	if err != nil && !errors.Is(err, workload.ErrNotFound) {
		return "", readFailed(err)
	}
	return pod.UID, nil
}

// releaseSurplus releases the leases that an attachment has beyond those that it keeps. One read of each of the latter
// makes sure first that it is really held: an attachment whose other leases have gone keeps all that it has.
func (s *holdings) releaseSurplus(ctx context.Context, keep, surplus []lease.Lease) error {
	if _, err := s.engine.unchanged(ctx, keep...); err != nil {
		return err
	}
	for _, l := range surplus {
		s.engine.log.Info("releasing the second address of one attachment", "address", l.Addr.String(), "kept",
			addresses(keep), "container", l.ContainerID)
		if _, err := FreeLease(ctx, s.engine.leases, l, lease.Change{}, sameAsk(l)); err != nil {
			return err
		}
	}
	return nil
}

// catchUp waits until the watch has delivered leases, and returns errStale if it had to wait. seen is the version up to
// which the watch had delivered everything when the leases were looked up. The index gets this replica's own writes and
// reads at once, but writes of others only by the watch. So the set that was whole first may lack a lease in the index,
// and the second set seems to be the only whole one.
func (s *holdings) catchUp(ctx context.Context, seen uint64, ls []lease.Lease) error {
	var version uint64
	for _, l := range ls {
		version = max(version, l.Version)
	}
	if version <= seen {
		return nil
	}
	if err := s.engine.index.Feed.WaitSeen(ctx, version); err != nil {
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

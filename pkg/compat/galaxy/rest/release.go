package rest

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// releasesAtOnce bounds the addresses of a request that are written at the same time.
const releasesAtOnce = 16

const unreleasedMessage = "Unreleased ips have been released or allocated to other pods, or are not within valid range"

// wanted is an address to release, with the lease on which the decision is based.
type wanted struct{ lease lease.Lease }

// ReleaseIPs answers POST /v1/ip: it returns addresses to their pools if their owners are still those in the request.
// While a pod has one of them, nothing is released. It returns the released addresses, even with an error; repeating
// the request releases the rest. c is recorded in the histories.
func (s *Service) ReleaseIPs(
	ctx context.Context, in ReleaseIPRequest, c lease.Change,
) (out ReleaseIPResponse, released []lease.Lease, err error) {
	asked, err := in.parse()
	if err != nil {
		return out, nil, err
	}
	var todo []wanted
	v := s.view(ctx)
	for addr, ask := range asked {
		l, ok := s.Index.Leases.Get(addr)
		if !ok || l.State == lease.Available {
			out.Unreleased = append(out.Unreleased, addr.String())
			continue
		}
		r, ok := v.owned(l, ask)
		if !ok {
			out.Unreleased = append(out.Unreleased, addr.String())
			continue
		}
		if !r.Releasable { // for either pod, if two have it
			return ReleaseIPResponse{}, nil, ipam.Refuse(ipam.ReasonAddressInUse, "%s is not releasable", addr)
		}
		todo = append(todo, wanted{l})
	}
	if err := s.certain(ctx, todo); err != nil {
		return ReleaseIPResponse{}, nil, err
	}
	released, err = s.release(ctx, todo, c)
	if err != nil {
		return out, released, failed(err, len(released), len(todo), "released")
	}
	gone := make(map[netip.Addr]bool, len(released))
	for _, l := range released {
		gone[l.Addr] = true
	}
	for _, w := range todo {
		if !gone[w.lease.Addr] {
			out.Unreleased = append(out.Unreleased, w.lease.Addr.String())
		}
	}
	slices.Sort(out.Unreleased)
	out.Response = Response{Code: http.StatusOK}
	if len(out.Unreleased) > 0 {
		out.Response = Response{http.StatusAccepted, unreleasedMessage}
	}
	return out, released, nil
}

// owned returns an address as seen from the attachment that a request names; ok is false if it names none.
func (v *view) owned(l lease.Lease, ask OwnedIP) (r row, ok bool) {
	for side := range l.Attachments() {
		r = v.row(side)
		if v.finish(&r); r.isOf(ask) {
			return r, true
		}
	}
	return r, false
}

// parse returns the addresses of a request with their owners.
func (in ReleaseIPRequest) parse() (map[netip.Addr]OwnedIP, error) {
	if in.IPs == nil {
		return nil, ipam.Refuse(ipam.ReasonMissingField,
			"ips is missing: the addresses to release, each with its owner")
	}
	asked := make(map[netip.Addr]OwnedIP, len(in.IPs))
	if len(in.IPs) > MaxSize {
		return nil, ipam.Refuse(ipam.ReasonBadRequest, "ips has %d addresses, at most %d at a time", len(in.IPs),
			MaxSize)
	}
	for _, ask := range in.IPs {
		addr, err := ipaddr.ParseAddr(ask.IP)
		if err != nil {
			return nil, ipam.Refuse(ipam.ReasonBadAddress, "%.100q is not a valid ip", ask.IP)
		}
		if before, twice := asked[addr]; twice && before.owner() != ask.owner() {
			return nil, ipam.Refuse(ipam.ReasonBadRequest, "%s is there twice, with different owners", addr)
		}
		asked[addr] = ask
	}
	return asked, nil
}

// owner returns the fields of a request that identify the owner of an address.
func (f OwnedIP) owner() OwnedIP {
	return OwnedIP{Namespace: f.Namespace, AppName: f.AppName, PodName: f.PodName, PoolName: f.PoolName,
		AppType: f.kind()}
}

// kind returns the kind of workload in a request; empty if it has none.
func (f OwnedIP) kind() string {
	if f.AppType == "" && f.IsDeployment {
		return deployment
	}
	return appType(f.AppType)
}

// isOf reports whether the address belongs to the owner in a request. If an address is not kept for a particular pod,
// its owner is the app or the shared pool: the request need not name the pod, or the app, that had it last.
func (r *row) isOf(ask OwnedIP) bool {
	forApp := r.kept && r.anybody
	forPool := forApp && r.PoolName != ""
	equal := func(asked, is string, optional bool) bool { return asked == is || asked == "" && optional }
	return ask.PoolName == r.PoolName && equal(ask.PodName, r.PodName, forApp) &&
		equal(ask.Namespace, r.Namespace, forPool) && equal(ask.AppName, r.AppName, forPool) &&
		// A request without a kind means the kind that galaxy supported first.
		equal(ask.kind(), r.AppType, forPool || r.AppType == statefulSet)
}

// certain makes sure, by one read for each pod, that nobody has the addresses any more.
func (s *Service) certain(ctx context.Context, todo []wanted) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(releasesAtOnce)
	for _, w := range todo {
		if w.lease.State != lease.Active {
			continue
		}
		group.Go(func() error {
			d, err := s.Gone(ctx, w.lease, true)
			switch {
			case err != nil:
				return ipam.Refuse(ipam.ReasonUnavailable, "server error: %v", err)
			case d.Verdict != gone.Gone:
				return ipam.Refuse(ipam.ReasonAddressInUse, "%s is not releasable", w.lease.Addr)
			}
			return nil
		})
	}
	return group.Wait()
}

// release frees the addresses whose leases have not changed since the decision. Others are left alone.
func (s *Service) release(ctx context.Context, todo []wanted, c lease.Change) (released []lease.Lease, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(releasesAtOnce)
	for _, w := range todo {
		group.Go(func() error {
			gone, err := allocator.FreeLease(ctx, s.Leases, w.lease, c, w.still)
			if gone {
				mu.Lock()
				defer mu.Unlock()
				released = append(released, w.lease)
			}
			return err
		})
	}
	err = group.Wait()
	return released, err
}

// still reports whether a lease, as seen from any of its attachments, is the one of the decision.
func (w wanted) still(now lease.Lease) bool {
	_, same := w.lease.From(func(then lease.Lease) bool { return unchanged(then, now) })
	return same
}

func unchanged(then, now lease.Lease) bool {
	return now.State == then.State && now.Claim == then.Claim && now.PodPrimaryKey == then.PodPrimaryKey &&
		now.Owner == then.Owner &&
		now.ContainerID == then.ContainerID && now.PodUID == then.PodUID && now.Updated.Equal(then.Updated)
}

// failed returns the refusal for a request that failed halfway, with its progress.
func failed(err error, done, all int, what string) error {
	reason := ipam.ReasonInternal
	if r, ok := errors.AsType[*ipam.Refusal](err); ok {
		reason = r.Reason
	}
	return ipam.Refuse(reason, "server error: %v; %d of %d addresses are %s already", err, done, all, what).
		WithHint("ask again for the rest")
}

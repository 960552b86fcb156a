package allocator

import (
	"context"
	"errors"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Releaser answers DEL: by the container or the owner, or by one address.
type Releaser struct{ engine *engine }

// Release gives up what a container or an owner holds. One that holds nothing is not an error: the DEL is remembered,
// so that an ADD that it overtook does not bring an address back. The answer is what was released.
func (d *Releaser) Release(ctx context.Context, r ReleaseRequest) ([]lease.Lease, error) {
	if err := ownerOfHost(r.Owner, r.OnHosts); err != nil {
		return nil, err
	}
	d.engine.releasing.Add(1)
	defer d.engine.releasing.Add(-1)
	began := d.began(&r)
	d.engine.tombstones.put(r, began)
	var released []lease.Lease
	var later *lease.Lease
	isHolder := func(l lease.Lease) bool {
		if r.isAbout(l) && r.beganBefore(l) && !l.Rebuilt() {
			later = &l
		}
		return r.matches(l)
	}
	for _, l := range d.releasable(r) {
		if !isHolder(l) {
			continue
		}
		if kept, err := d.keptByPod(ctx, l); err != nil || kept {
			if err != nil {
				return released, err
			}
			continue
		}
		gone, err := ReleaseLease(ctx, d.engine.leases, l, lease.Change{}, isHolder)
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
func (d *Releaser) began(r *ReleaseRequest) moment {
	began := d.engine.moment(r.Host, r.StartedAt, r.ArrivedAt)
	if !r.StartedAt.IsZero() {
		r.StartedAt = began.counts()
	}
	return began
}

// Frees reports whether a DEL frees an address by the index, without a question to the API server. What a pod holds
// without a container takes such a question, and is not part of it.
func (d *Releaser) Frees(r ReleaseRequest) bool {
	d.began(&r)
	return slices.ContainsFunc(d.releasable(r), func(l lease.Lease) bool {
		return r.matches(l) && (l.ContainerID != "" || l.Owner != "")
	})
}

// keptByPod reports whether a lease that names no container stays although a container of its pod was deleted:
// such a lease was rebuilt from its pod, and the container may be an earlier one. It goes when the pod ends.
func (d *Releaser) keptByPod(ctx context.Context, l lease.Lease) (bool, error) {
	if l.ContainerID != "" || l.Owner != "" {
		return false, nil
	}
	pod, err := d.engine.pods.FindLive(ctx, l.Namespace, l.PodName, l.PodUID)
	switch {
	case errors.Is(err, workload.ErrNotFound):
		return false, nil
	case err != nil:
		return false, readFailed(err)
	}
	return !pod.Ended && !pod.Deleting, nil
}

// releasable returns the leases of the index that a DEL is about.
func (d *Releaser) releasable(r ReleaseRequest) []lease.Lease {
	var all []lease.Lease
	if r.ContainerID != "" {
		all = d.engine.index.Leases.ByContainer(r.ContainerID, r.IfName)
	}
	of := lease.Holder{PodUID: r.PodUID, Owner: r.Owner, IfName: r.IfName}
	for _, l := range d.engine.index.Leases.ByAttachment(of) {
		if !slices.ContainsFunc(all, func(o lease.Lease) bool { return o.Addr == l.Addr }) {
			all = append(all, l)
		}
	}
	return slices.DeleteFunc(all, func(l lease.Lease) bool {
		if p, ok := d.engine.index.Pools.Get(l.Pool); ok && r.Network != "" && p.Network != r.Network {
			return true
		}
		return !r.isAbout(l)
	})
}

// matches reports whether a lease is one that the DEL is about, and not of an ADD that came after it.
func (r ReleaseRequest) matches(l lease.Lease) bool { return r.isAbout(l) && !r.beganBefore(l) }

// beganBefore reports whether the DEL began before the ADD of a lease.
func (r ReleaseRequest) beganBefore(l lease.Lease) bool {
	return !r.StartedAt.IsZero() && l.StartedAt.After(r.StartedAt)
}

// isAbout reports whether a lease is of the holder of the DEL: by container ID; by pod UID only where the
// lease has no container; by owner, unless the two name different containers; never by pod name. A lease of a host that
// the caller does not act for is nobody's here.
func (r ReleaseRequest) isAbout(l lease.Lease) bool {
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

package allocator

import (
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

const (
	tombstoneLife = 10 * time.Minute
	maxTombstones = 65536
)

// tombstones remember which containers were deleted and which owners gave up what they held, for ten minutes and
// within bounds: an ADD that began before the DEL must not bring an address back. One that began after it is
// not concerned.
type tombstones struct {
	mu    sync.Mutex
	by    map[tombstoneKey]tombstone
	order []placedTombstone // oldest first
	now   func() time.Time
}

// tombstoneKey is what a DEL was about; an empty ifName or network covers all of them.
type tombstoneKey struct {
	deletedHolder
	ifName, network string
}

// deletedHolder names a holder.
type deletedHolder struct {
	kind holderKind
	name string
}

type holderKind uint8

const (
	ofContainer holderKind = iota
	// ofOwner is for all that an owner holds.
	ofOwner
	// ofBareOwner is for what an owner holds without a container.
	ofBareOwner
)

// holders returns whom the tombstones of a DEL are for. As in matches, a DEL that names owner and container leaves
// other containers of the owner alone.
func (r ReleaseRequest) holders() (all []deletedHolder) {
	if r.ContainerID != "" {
		all = append(all, deletedHolder{ofContainer, r.ContainerID})
	}
	switch {
	case r.Owner == "":
	case r.ContainerID == "":
		all = append(all, deletedHolder{ofOwner, r.Owner})
	default:
		all = append(all, deletedHolder{ofBareOwner, r.Owner})
	}
	return all
}

type tombstone struct {
	began moment
	put   time.Time
}

// placedTombstone is an entry of the order in which tombstones expire.
type placedTombstone struct {
	tombstoneKey
	put time.Time
}

func newTombstones(now func() time.Time) *tombstones {
	return &tombstones{by: map[tombstoneKey]tombstone{}, now: now}
}

// put remembers a DEL that began at the given moment.
func (t *tombstones) put(of deletedHolder, ifName, network string, began moment) {
	if failpoint.Broken("marks") {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k, now := tombstoneKey{of, ifName, network}, t.now()
	if old, ok := t.by[k]; ok && old.began.after(began) {
		began = old.began
	}
	t.by[k] = tombstone{began: began, put: now}
	t.order = append(t.order, placedTombstone{k, now})
	for len(t.order) > maxTombstones || now.Sub(t.order[0].put) >= tombstoneLife {
		oldest := t.order[0]
		t.order = t.order[1:]
		if t.by[oldest.tombstoneKey].put.Equal(oldest.put) {
			delete(t.by, oldest.tombstoneKey)
		}
	}
}

// overtook reports whether a DEL overtook the ADD of a holder that began at the given moment.
func (t *tombstones) overtook(h lease.Holder, network string, began moment) bool {
	switch {
	case h.ContainerID != "":
		if t.deleted(deletedHolder{ofContainer, h.ContainerID}, h.IfName, network, began) {
			return true
		}
	case h.Owner != "":
		if t.deleted(deletedHolder{ofBareOwner, h.Owner}, h.IfName, network, began) {
			return true
		}
	}
	return h.Owner != "" && t.deleted(deletedHolder{ofOwner, h.Owner}, h.IfName, network, began)
}

// deleted reports whether there is a tombstone of one holder for an ADD that began at the given moment.
func (t *tombstones) deleted(of deletedHolder, ifName, network string, began moment) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range []tombstoneKey{{of, ifName, network}, {of, ifName, ""}, {of, "", network}, {of, "", ""}} {
		if d, ok := t.by[k]; ok && t.now().Sub(d.put) < tombstoneLife && !began.after(d.began) {
			return true
		}
	}
	return false
}

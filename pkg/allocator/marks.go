package allocator

import (
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

const (
	markLife = 10 * time.Minute
	maxMarks = 65536
)

// marks remembers which containers were deleted and which owners gave up what they held, for ten minutes and
// within bounds: an ADD that began before the DEL must not bring an address back. One that began after it is
// not concerned.
type marks struct {
	mu    sync.Mutex
	by    map[markKey]mark
	order []putMark // oldest first
	now   func() time.Time
}

// markKey is what a DEL was about; an empty ifName or network covers all of them.
type markKey struct {
	marked
	ifName, network string
}

// marked names a holder.
type marked struct {
	kind markKind
	name string
}

type markKind uint8

const (
	markContainer markKind = iota
	// markOwner is for all that an owner holds.
	markOwner
	// markBare is for what an owner holds without a container.
	markBare
)

// marks are the holders that a DEL is remembered for: as in matches, one that names owner and container leaves
// other containers of the owner alone.
func (r ReleaseRequest) marks() (all []marked) {
	if r.ContainerID != "" {
		all = append(all, marked{markContainer, r.ContainerID})
	}
	switch {
	case r.Owner == "":
	case r.ContainerID == "":
		all = append(all, marked{markOwner, r.Owner})
	default:
		all = append(all, marked{markBare, r.Owner})
	}
	return all
}

type mark struct {
	began moment
	put   time.Time
}

type putMark struct {
	markKey
	put time.Time
}

func newMarks(now func() time.Time) *marks { return &marks{by: map[markKey]mark{}, now: now} }

// put notes a DEL that began at the given moment.
func (m *marks) put(of marked, ifName, network string, began moment) {
	if failpoint.Broken("marks") {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k, now := markKey{of, ifName, network}, m.now()
	if old, ok := m.by[k]; ok && old.began.after(began) {
		began = old.began
	}
	m.by[k] = mark{began: began, put: now}
	m.order = append(m.order, putMark{k, now})
	for len(m.order) > maxMarks || now.Sub(m.order[0].put) >= markLife {
		oldest := m.order[0]
		m.order = m.order[1:]
		if m.by[oldest.markKey].put.Equal(oldest.put) {
			delete(m.by, oldest.markKey)
		}
	}
}

// overtook says whether a DEL overtook the ADD of a holder that began at the given moment.
func (m *marks) overtook(h ipam.Holder, network string, began moment) bool {
	switch {
	case h.ContainerID != "":
		if m.deleted(marked{markContainer, h.ContainerID}, h.IfName, network, began) {
			return true
		}
	case h.Owner != "":
		if m.deleted(marked{markBare, h.Owner}, h.IfName, network, began) {
			return true
		}
	}
	return h.Owner != "" && m.deleted(marked{markOwner, h.Owner}, h.IfName, network, began)
}

// deleted says whether one mark is for an ADD that began at the given moment.
func (m *marks) deleted(of marked, ifName, network string, began moment) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range []markKey{{of, ifName, network}, {of, ifName, ""}, {of, "", network}, {of, "", ""}} {
		if d, ok := m.by[k]; ok && m.now().Sub(d.put) < markLife && !began.after(d.began) {
			return true
		}
	}
	return false
}

package allocator

import (
	"sync"
	"time"
)

const (
	markLife = 10 * time.Minute
	maxMarks = 65536
)

// marks remembers which containers were deleted, for ten minutes and within bounds: an ADD that
// began before the DEL must not bring an address back. One that began after it is not concerned.
type marks struct {
	mu    sync.Mutex
	by    map[markKey]mark
	order []putMark // oldest first
	now   func() time.Time
}

type markKey struct{ container, ifName string }

type mark struct{ began, put time.Time }

type putMark struct {
	markKey
	put time.Time
}

func newMarks(now func() time.Time) *marks { return &marks{by: map[markKey]mark{}, now: now} }

// put notes a DEL that began at the given time; an empty ifName covers all interfaces.
func (m *marks) put(container, ifName string, began time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, now := markKey{container, ifName}, m.now()
	if old, ok := m.by[k]; ok && old.began.After(began) {
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

// deleted says whether an ADD that began at the given time was overtaken by a DEL.
func (m *marks) deleted(container, ifName string, began time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range []markKey{{container, ifName}, {container, ""}} {
		if d, ok := m.by[k]; ok && m.now().Sub(d.put) < markLife && !began.After(d.began) {
			return true
		}
	}
	return false
}

package plugin

import (
	"sync/atomic"
	"time"
)

// median follows the time within which half of the calls are answered.
type median struct{ now atomic.Int64 }

func newMedian() *median {
	m := &median{}
	m.now.Store(int64(10 * time.Millisecond))
	return m
}

func (m *median) wait() time.Duration { return time.Duration(m.now.Load()) }

// met notes whether a call was answered within the time: it is shorter for the next one then, and longer otherwise.
func (m *median) met(answered bool) {
	d := m.now.Load()
	if answered {
		d -= d / 20
	} else {
		d += d / 20
	}
	m.now.Store(min(max(d, int64(time.Millisecond)), int64(Attempt)))
}

// SetImpatient has half of the calls given up from now on, or none.
func (c *Callers) SetImpatient(on bool) {
	if on {
		c.impatient.Store(newMedian())
	} else {
		c.impatient.Store(nil)
	}
}

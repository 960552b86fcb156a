package runstate

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxSetBack bounds the setback of a clock that is compensated. If a start differs by more, the allocator assumes
	// another clock and orders requests by arrival.
	maxSetBack = 5 * time.Minute
	// stepAhead is the difference from which on a clock counts as set ahead, not only as running faster than the time
	// since boot.
	stepAhead = 100 * time.Millisecond
)

// Up returns the time since the node booted, including the time in which it was suspended. Nobody can set it.
func Up() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}

// Steady returns a time of the node's clock that is comparable with that of earlier calls. If the clock was set back by
// less than maxSetBack since, the old clock continues, so that a pod's next container is not older than the one before.
// up is the time since boot at that moment. If moved is true, the state uses another clock now and must be stored.
func (s *State) Steady(now time.Time, up time.Duration) (t time.Time, moved bool) {
	booted := now.Add(-up)
	back := s.BootedAt.Sub(booted)
	if s.BootedAt.IsZero() || back < -stepAhead || back > maxSetBack {
		s.BootedAt = booted
		return now, true
	}
	return now.Add(max(back, 0)), false
}

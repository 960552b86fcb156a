package runstate

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxSetBack bounds how far back a clock is set for which that does not count. The allocator takes a start that is
	// more than this off for that of another clock, and goes by the arrivals.
	maxSetBack = 5 * time.Minute
	// stepAhead is from when on a clock was set ahead, and does not only run faster than the time since boot.
	stepAhead = 100 * time.Millisecond
)

// Up returns the time since the node booted, that in which it was suspended included. Nobody can set it.
func Up() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}

// Steady returns a time of the node's clock for calls that are compared with earlier ones: a clock that was set back by
// less than maxSetBack since these goes on as it was, so that the next container of a pod is not older than the one
// before. up is the time since boot at that moment. moved: the state goes by another clock now, and is to be kept.
func (s *State) Steady(now time.Time, up time.Duration) (t time.Time, moved bool) {
	booted := now.Add(-up)
	back := s.BootedAt.Sub(booted)
	if s.BootedAt.IsZero() || back < -stepAhead || back > maxSetBack {
		s.BootedAt = booted
		return now, true
	}
	return now.Add(max(back, 0)), false
}

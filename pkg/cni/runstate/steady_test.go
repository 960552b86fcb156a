package runstate

import (
	"testing"
	"time"
)

// TestSteady has a node whose clock is set, call by call: the calls keep their order, unless the clock was so far off
// that it says nothing.
func TestSteady(t *testing.T) {
	boot := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var s State
	for _, c := range []struct {
		name  string
		up    time.Duration
		off   time.Duration // the clock's, beside the right time
		want  time.Duration // what is told, beside the right time
		moved bool
	}{
		{"the first call of a boot", time.Minute, 0, 0, true},
		{"the next", 2 * time.Minute, 0, 0, false},
		{"the clock runs faster than the time since boot", 3 * time.Minute, 50 * time.Millisecond, 50 * time.Millisecond, false},
		{"set back by minutes", 4 * time.Minute, -4 * time.Minute, 0, false},
		{"a moment later", 4*time.Minute + time.Second, -4 * time.Minute, 0, false},
		{"right again", 6 * time.Minute, 0, 0, false},
		{"set ahead", 7 * time.Minute, time.Hour, time.Hour, true},
		{"and back, by more than can be", 8 * time.Minute, 0, 0, true},
		{"set back by an hour", 9 * time.Minute, -time.Hour, -time.Hour, true},
		{"set back again, by a second", 10 * time.Minute, -time.Hour - time.Second, -time.Hour, false},
	} {
		at := boot.Add(c.up)
		got, moved := s.Steady(at.Add(c.off), c.up)
		if want := at.Add(c.want); !got.Equal(want) || moved != c.moved {
			t.Errorf("%s: %s (moved %t), want %s (%t)", c.name, got, moved, want, c.moved)
		}
	}
	if up, err := Up(); err != nil || up <= 0 {
		t.Errorf("up for %s, %v", up, err)
	}
}

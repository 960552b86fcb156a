package store

import (
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/test/intercept"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func abs(d time.Duration) time.Duration { return max(d, -d) }

// dateOf is the Date header of an answer at a time.
func dateOf(server time.Time) time.Time { return server.Truncate(time.Second) }

func TestClockKnowsNothingAtFirst(t *testing.T) {
	if got := NewClock(func() time.Time { return epoch }).Now(); !got.Equal(epoch) {
		t.Errorf("%v, want the local time %v", got, epoch)
	}
}

// A local clock that is set while the controller runs changes nothing, not even until the next answer.
func TestClockIsNotSet(t *testing.T) {
	wall := epoch
	c := NewClock(steady(func() time.Time { return wall }))
	now := c.local()
	c.observe(dateOf(now), now, now)
	for _, by := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		wall = epoch.Add(by)
		if got := c.Now(); abs(got.Sub(epoch)) > time.Minute {
			t.Errorf("set by %s, the time is %s instead of %s", by, got, epoch)
		}
	}
}

// Whatever the offset, the true time of the server lies within the bounds after any number of answers,
// they only narrow, and Now, which does not go back, is no further off than they ever were wide.
func TestClockBoundsNarrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := func(name string, low, high time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(int64(low), int64(high)).Draw(t, name))
		}
		offset := duration("offset", -100*time.Hour, 100*time.Hour)
		local := epoch.Add(duration("phase", 0, time.Second))
		c := NewClock(func() time.Time { return local })
		var first, width time.Duration
		for i := range rapid.IntRange(1, 20).Draw(t, "answers") {
			sent := local
			local = local.Add(duration("way there", 0, 300*time.Millisecond))
			date := dateOf(local.Add(offset))
			local = local.Add(duration("way back", 0, 300*time.Millisecond))
			c.observe(date, sent, local)
			if c.low > offset || c.high < offset {
				t.Fatalf("offset %s is not between %s and %s", offset, c.low, c.high)
			}
			if w := c.high - c.low; i > 0 && w > width {
				t.Fatalf("the bounds grew from %s to %s", width, w)
			}
			if width = c.high - c.low; i == 0 {
				first = width
			}
			if got, want := c.Now(), local.Add(offset); abs(got.Sub(want)) > first+time.Microsecond {
				t.Fatalf("Now is %s off, the bounds were %s wide", got.Sub(want), first)
			}
			local = local.Add(duration("pause", 0, 3*time.Second))
		}
	})
}

// A local clock that is right is believed: replicas whose clocks are right do not move each other's times.
func TestClockLeavesARightClockAlone(t *testing.T) {
	local := epoch.Add(300 * time.Millisecond)
	c := NewClock(func() time.Time { return local })
	for range 10 {
		c.observe(dateOf(local), local, local.Add(time.Millisecond))
		local = local.Add(770 * time.Millisecond)
		if got := c.Now(); !got.Equal(local) {
			t.Fatalf("%v, want %v", got, local)
		}
	}
}

func TestClockIsSet(t *testing.T) {
	for what, test := range map[string]struct{ step time.Duration }{
		"the local clock goes back an hour":        {-time.Hour},
		"the local clock goes back three seconds":  {-3 * time.Second},
		"the local clock goes forward by an hour":  {time.Hour},
		"the local clock goes back half a second":  {-500 * time.Millisecond},
		"the local clock goes forward by a little": {500 * time.Millisecond},
	} {
		t.Run(what, func(t *testing.T) {
			local, server := epoch, epoch.Add(7*time.Second)
			c := NewClock(func() time.Time { return local })
			pass := func(d time.Duration) {
				local, server = local.Add(d), server.Add(d)
				c.observe(dateOf(server), local, local)
			}
			for range 20 {
				pass(137 * time.Millisecond)
			}
			if got := c.Now(); abs(got.Sub(server)) > 200*time.Millisecond {
				t.Fatalf("%s off before anything happened", got.Sub(server))
			}
			local = local.Add(test.step)
			for range 20 {
				pass(137 * time.Millisecond)
			}
			if got := c.Now(); abs(got.Sub(server)) > time.Second {
				t.Errorf("%s off after the clock was set and twenty answers", got.Sub(server))
			}
		})
	}
}

// No two calls get the same time, and none an earlier one, unless a clock was set back far.
func TestClockIncreases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		local := epoch
		c := NewClock(func() time.Time { return local })
		last := c.Now()
		for range rapid.IntRange(1, 50).Draw(t, "calls") {
			step := time.Duration(rapid.Int64Range(-int64(maxHold)/60, int64(maxHold)/60).Draw(t, "step"))
			local = local.Add(step)
			got := c.Now()
			if !got.After(last) {
				t.Fatalf("%v after %v", got, last)
			}
			last = got
		}
	})
	t.Run("set back far", func(t *testing.T) {
		local := epoch
		c := NewClock(func() time.Time { return local })
		c.Now()
		local = local.Add(-time.Hour)
		if got := c.Now(); !got.Equal(local) {
			t.Errorf("%v, want %v: nobody waits for an hour", got, local)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		c := NewClock(func() time.Time { return epoch })
		var mu sync.Mutex
		seen := map[time.Time]bool{}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 1000 {
					now := c.Now()
					mu.Lock()
					seen[now] = true
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if len(seen) != 8000 {
			t.Errorf("%d different times, want 8000", len(seen))
		}
	})
}

// Times are compared with times out of objects, so they must not carry the monotonic clock, which knows
// nothing of a wall clock that was set.
func TestClockHasNoMonotonicPart(t *testing.T) {
	if got := NewClock(nil).Now().String(); strings.Contains(got, "m=") {
		t.Errorf("%s", got)
	}
}

// Replicas whose own clocks are hours apart agree with the API server to within a second.
func TestClockLearnsFromTheAPIServer(t *testing.T) {
	for what, skew := range map[string]time.Duration{"right": 0, "ahead": 5 * time.Hour, "behind": -5 * time.Hour} {
		t.Run(what, func(t *testing.T) {
			clock := NewClock(func() time.Time { return time.Now().Round(0).Add(skew) })
			c, err := New(config(t, &intercept.Tap{}), nil, clock)
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				if _, err := c.List(t.Context(), "spec.pool=none"); err != nil {
					t.Fatal(err)
				}
			}
			if off := abs(time.Until(c.Now())); off > 1100*time.Millisecond {
				t.Errorf("%s off", off)
			}
		})
	}
}

package sim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// replays is the number of times that a plan is played again.
const replays = 10

// TestReplay plays the plan of the file SIM_PLAN ten times, and then leaves out of it what it fails without, for
// SIM_MINUTES (2) at most.
func TestReplay(t *testing.T) {
	file := os.Getenv("SIM_PLAN")
	if file == "" {
		t.Skip("set SIM_PLAN, or say: make sim SIM_PLAN=FILE")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var p plan
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	all := playTimes(t, p, replays, replays)
	failed := slices.DeleteFunc(slices.Clone(all), func(r result) bool { return len(r.Wrong) == 0 })
	t.Logf("%d of %d replays fail", len(failed), len(all))
	if len(failed) == 0 {
		return
	}
	last := failed[len(failed)-1]
	last.Plan = shrink(t, p, last, time.Now().Add(time.Duration(number(t, "SIM_MINUTES", 2))*time.Minute))
	report(t, last)
}

// playTimes plays a plan so many times, or until so many did not fail.
func playTimes(t *testing.T, p plan, times, passes int) (all []result) {
	t.Helper()
	left := times
	playAll(t, func() (plan, bool) {
		left--
		return p, left >= 0
	}, func(r result) bool {
		all = append(all, r)
		if len(r.Wrong) == 0 {
			passes--
		}
		return passes == 0
	})
	return all
}

// shrink leaves things out of a plan while it fails without them twice in a row: first all that came after, then halves
// of what there is, then quarters, and so on.
func shrink(t *testing.T, p plan, failed result, deadline time.Time) plan {
	t.Helper()
	if failed.Lasted > 0 {
		p.Seconds = min(p.Seconds, int(failed.Lasted.Seconds())+1)
	}
	var names []string
	for i := range p.Slots {
		names = append(names, fmt.Sprint("slot ", i))
	}
	names = append(names, failed.Mishaps...)
	names = slices.DeleteFunc(names, func(n string) bool { return !p.has(n) })
	for size := len(names) / 2; size > 0 && time.Now().Before(deadline); size /= 2 {
		for from := 0; from < len(names) && time.Now().Before(deadline); {
			part := names[from:min(from+size, len(names))]
			less := p
			less.Without = slices.Concat(p.Without, part)
			if fails(t, less, 2) {
				p = less
				names = slices.Concat(names[:from], names[from+len(part):])
				continue
			}
			from += size
		}
	}
	t.Logf("it fails with these alone, in %d seconds: %v", p.Seconds, names)
	return p
}

// fails reports whether a plan fails so many times in a row.
func fails(t *testing.T, p plan, times int) bool {
	t.Helper()
	return !slices.ContainsFunc(playTimes(t, p, times, 1), func(r result) bool { return len(r.Wrong) == 0 })
}

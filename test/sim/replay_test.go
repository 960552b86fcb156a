package sim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// replays is how often a plan is played again.
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
	failed := 0
	var last result
	for range replays {
		if r := play(t, p); len(r.wrong) > 0 {
			failed++
			last = r
		}
	}
	t.Logf("%d of %d replays fail", failed, replays)
	if failed == 0 {
		return
	}
	last.plan = shrink(t, p, last, time.Now().Add(time.Duration(number(t, "SIM_MINUTES", 2))*time.Minute))
	report(t, last)
}

// shrink leaves things out of a plan while it fails without them twice in a row: first all that came after, then halves
// of what there is, then quarters, and so on.
func shrink(t *testing.T, p plan, failed result, deadline time.Time) plan {
	t.Helper()
	p.Seconds = min(p.Seconds, int(failed.lasted.Seconds())+1)
	var names []string
	for i := range p.Slots {
		names = append(names, fmt.Sprint("slot ", i))
	}
	names = append(names, failed.mishaps...)
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
	for range times {
		if len(play(t, p).wrong) == 0 {
			return false
		}
	}
	return true
}

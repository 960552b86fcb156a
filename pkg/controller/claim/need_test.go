package claim

import (
	"testing"
	"time"
)

// TestAbsence: a workload is gone when it was seen so for a while, without a pause in which nobody looked; for much
// longer where its kind was not served at some time.
func TestAbsence(t *testing.T) {
	type look struct {
		after int // seconds after the one before
		kind  bool
		gone  bool
	}
	for name, looks := range map[string][]look{
		"twice":                          {{0, false, false}, {14, false, false}, {1, false, true}},
		"nobody looked for a while":      {{0, false, false}, {61, false, false}, {20, false, true}},
		"its kind is gone":               {{0, true, false}, {60, true, false}, {60, true, false}, {60, true, false}, {60, true, false}, {60, true, false}, {60, true, false}, {60, true, false}, {60, true, false}, {60, true, false}, {60, true, true}},
		"its kind was gone, and is back": {{0, false, false}, {10, true, false}, {20, false, false}, {20, false, false}},
		"later, another one of its name": {{0, true, false}, {3600, false, false}, {15, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
			var a goneSince
			for i, l := range looks {
				now = now.Add(time.Duration(l.after) * time.Second)
				if a = a.seenAgain(now, l.kind); a.lasts() != l.gone {
					t.Errorf("look %d: gone is %t", i, a.lasts())
				}
			}
		})
	}
}

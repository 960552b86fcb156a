package ipam

import (
	"context"
	"errors"
	"testing"
)

// What the index shows after the store was put back to version 5 while the watch had reached 9.
func TestRestart(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.1-10.0.0.6"}))
	same, newer, gone, moved := lease("10.0.0.1", "a", 3), lease("10.0.0.2", "a", 8), lease("10.0.0.3", "a", 7), lease("10.0.0.4", "a", 9)
	for _, l := range []Lease{same, available("10.0.0.5", "a", 4), gone, newer, moved} {
		x.Watched(l)
	}
	x.WroteDelete(ip("10.0.0.5"), 4)
	x.Doubt(ip("10.0.0.6"), "key", now)
	told := make(chan error, 1)
	go func() { told <- x.WaitSeen(t.Context(), 12) }()
	for x.waiting() == 0 { // until it waits
	}
	older := lease("10.0.0.4", "a", 2)
	older.PodUID = "another"
	x.Restart([]Lease{same, available("10.0.0.2", "a", 1), older, available("10.0.0.5", "a", 4)}, 5)

	if err := <-told; !errors.Is(err, ErrRestarted) {
		t.Errorf("who waited is told %v", err)
	}
	if x.Seen() != 5 || x.Doubts("") != nil && len(x.Doubts("")) > 0 {
		t.Errorf("seen %d, doubts %v", x.Seen(), x.Doubts(""))
	}
	for addr, want := range map[string]struct {
		version uint64
		lost    bool
	}{
		"10.0.0.1": {3, false}, "10.0.0.2": {1, true}, "10.0.0.3": {0, true}, "10.0.0.4": {2, false}, "10.0.0.5": {4, false},
	} {
		l, _ := x.Get(ip(addr))
		if _, lost := x.Lost(ip(addr)); l.Version != want.version || lost != want.lost {
			t.Errorf("%s: version %d, lost %v; want %d, %v", addr, l.Version, lost, want.version, want.lost)
		}
	}
	checkFreeSets(t, x)
	checkLeftovers(t, x)
	x.Watched(lease("10.0.0.2", "a", 6)) // the new versions count
	if _, lost := x.Lost(ip("10.0.0.2")); lost || x.Seen() != 6 {
		t.Errorf("after the next event: lost %v, seen %d", lost, x.Seen())
	}
	if err := x.WaitSeen(context.Background(), 6); err != nil {
		t.Error(err)
	}
}

// A store that was put back and whose versions were raised shows itself by a list that is behind what was known.
func TestListBehindItsOwnVersion(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.1-10.0.0.2"}))
	x.Watched(lease("10.0.0.1", "a", 8))
	x.Wrote(lease("10.0.0.2", "a", 2000)) // newer than the list: nothing is known of it there
	if !x.Replace([]Lease{available("10.0.0.1", "a", 3), available("10.0.0.2", "a", 4)}, 1000) {
		t.Error("the restore is not noticed")
	}
	if l, _ := x.Get(ip("10.0.0.1")); l.Version != 3 {
		t.Errorf("the index shows version %d", l.Version)
	}
	if _, lost := x.Lost(ip("10.0.0.1")); !lost {
		t.Error("what was held before is not lost")
	}
	if l, _ := x.Get(ip("10.0.0.2")); l.Version != 2000 {
		t.Errorf("the newer write is gone: version %d", l.Version)
	}
	if x.Replace([]Lease{available("10.0.0.1", "a", 3), available("10.0.0.2", "a", 4)}, 1001) {
		t.Error("the next list counts as a restore, too")
	}
	checkFreeSets(t, x)
}

func (x *Index) waiting() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.waiters)
}

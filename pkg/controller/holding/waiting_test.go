package holding

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Who waits for a pool is woken by that pool alone, who waits for any by each, and everybody once.
func TestWaiting(t *testing.T) {
	var w Waiting
	wakes := func(pool string, want ...string) {
		t.Helper()
		got := w.Wake(pool)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pool %q wakes (-want +got): %s", pool, diff)
		}
	}
	wakes("blue")
	w.For("a", "blue")
	w.For("b", "green")
	w.Set("c", true)
	w.For("d", "blue")
	w.Set("d", false)
	wakes("blue", "a", "c")
	wakes("blue")
	w.Set("c", true)
	wakes("", "b", "c")
}

func TestFrees(t *testing.T) {
	free, held := lease.Lease{State: lease.Available, Version: 2}, lease.Lease{State: lease.Active, Version: 1}
	for _, c := range []struct {
		old, now lease.Lease
		want     bool
	}{
		{held, free, true},
		{lease.Lease{State: lease.Available}, free, true}, // its object is new
		{free, free, false},
		{free, held, false},
	} {
		if got := Frees(c.old, c.now); got != c.want {
			t.Errorf("from %+v to %+v: %v", c.old, c.now, got)
		}
	}
}

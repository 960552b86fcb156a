package index

import (
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// An address whose object goes while it is held is nobody's until it is settled what became of its holder.
func TestLost(t *testing.T) {
	const a = "10.0.0.9"
	since := func(l lease.Lease, s int) lease.Lease { l.Updated = at(s); return l }
	type step = func(*Index)
	goes := func(version uint64) step { return func(x *Index) { x.Feed.WatchedDelete(ip(a), version) } }
	comes := func(l lease.Lease) step { return func(x *Index) { x.Feed.Watched(l) } }
	held := leased(a, "a", 1)
	for name, tc := range map[string]struct {
		steps []step
		lost  bool
		free  uint64
	}{
		"deleted":                       {[]step{comes(held), goes(2)}, true, 0},
		"not in a full list":            {[]step{comes(held), func(x *Index) { x.Feed.Replace(nil, 2) }}, true, 0},
		"not there when it was read":    {[]step{comes(held), func(x *Index) { x.Feed.WroteDelete(ip(a), 1, 0) }}, true, 0},
		"set aside and deleted":         {[]step{comes(reserved(a, "a", 1)), goes(2)}, true, 0},
		"free and deleted":              {[]step{comes(available(a, "a", 1)), goes(2)}, false, 1},
		"released and deleted":          {[]step{comes(held), comes(since(available(a, "a", 2), 9)), goes(3)}, false, 1},
		"restored":                      {[]step{comes(held), goes(2), comes(leased(a, "a", 3))}, false, 0},
		"made anew, and free":           {[]step{comes(held), goes(2), comes(available(a, "a", 3))}, true, 0},
		"released, as is heard later":   {[]step{comes(held), func(x *Index) { x.Feed.WroteDelete(ip(a), 1, 0) }, comes(since(available(a, "a", 2), 9))}, false, 1},
		"free since before it was lost": {[]step{comes(since(held, 9)), goes(2), comes(since(available(a, "a", 3), 8))}, true, 0},
		"emptied by hand":               {[]step{comes(since(held, 5)), comes(available(a, "a", 2))}, true, 0},
		"emptied, time kept":            {[]step{comes(since(held, 5)), comes(since(finalized(available(a, "a", 2)), 5))}, true, 0},
		"emptied while deleted":         {[]step{comes(since(held, 5)), comes(since(going(finalized(available(a, "a", 2))), 5))}, true, 0},
		"emptied, finalizer gone":       {[]step{comes(since(held, 5)), comes(since(available(a, "a", 2), 5))}, true, 0},
		"emptied while set aside":       {[]step{comes(since(reserved(a, "a", 1), 5)), comes(available(a, "a", 2))}, true, 0},
		"emptied, and restored":         {[]step{comes(since(held, 5)), comes(available(a, "a", 2)), comes(leased(a, "a", 3))}, false, 0},
		"emptied, and released":         {[]step{comes(since(held, 5)), comes(available(a, "a", 2)), comes(since(available(a, "a", 3), 6))}, false, 1},
		"emptied in a list":             {[]step{comes(since(held, 5)), func(x *Index) { x.Feed.Replace([]lease.Lease{available(a, "a", 2)}, 2) }}, true, 0},
		"released, a clock behind":      {[]step{comes(since(held, 5)), comes(since(available(a, "a", 2), 4))}, false, 1},
		"released while deleted":        {[]step{comes(since(held, 5)), comes(since(going(finalized(available(a, "a", 2))), 6))}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(pool(t, "a", "10.0.0.0/24", []string{a}))
			for _, step := range tc.steps {
				step(x)
			}
			if _, lost := x.Leases.Missing(ip(a)); lost != tc.lost || (x.Leases.CountMissing() == 1) != tc.lost {
				t.Errorf("lost = %v, %d in all; want %v", lost, x.Leases.CountMissing(), tc.lost)
			}
			if free := x.Pools.Counts("a", now).Free; free != tc.free {
				t.Errorf("%d addresses are free, want %d", free, tc.free)
			}
			if _, refusal := x.Pick(want(asking(a)), now); (refusal == nil) != (tc.free == 1) {
				t.Errorf("asked for: %s", refused(refusal))
			}
		})
	}
}

func finalized(l lease.Lease) lease.Lease { l.HeldFinalizer = true; return l }

func going(l lease.Lease) lease.Lease { l.Deleting = true; return l }

func TestLostTo(t *testing.T) {
	x := New()
	held := leased("10.0.0.9", "a", 1)
	x.Feed.Watched(held)
	x.Feed.Watched(reserved("10.0.0.10", "a", 2))
	x.Feed.Replace(nil, 3)
	for name, tc := range map[string]struct {
		h    lease.Holder
		want bool
	}{
		"itself":                {held.Holder, true},
		"another container":     {lease.Holder{PodUID: held.PodUID, IfName: held.IfName, ContainerID: "c2"}, true},
		"another interface":     {lease.Holder{PodUID: held.PodUID, IfName: "net1"}, false},
		"another pod":           {lease.Holder{PodUID: "u2", IfName: held.IfName, ContainerID: "c2"}, false},
		"an owner of that name": {lease.Holder{Owner: held.PodUID, IfName: held.IfName}, false},
		"nobody":                {lease.Holder{}, false},
	} {
		if _, ok := x.Leases.MissingOf(tc.h); ok != tc.want {
			t.Errorf("%s: %v, want %v", name, ok, tc.want)
		}
	}
}

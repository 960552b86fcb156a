package index

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// What the index shows of one address after events and answers in any order that can happen.
func TestNothingOldComesBack(t *testing.T) {
	const a = "10.0.0.9"
	v := func(version uint64) lease.Lease { return takenAt(a, version) }
	type step = func(*Index)
	watched := func(version uint64) step { return func(x *Index) { x.Feed.Watched(v(version)) } }
	watchedDelete := func(version uint64) step { return func(x *Index) { x.Feed.WatchedDelete(ip(a), version) } }
	wrote := func(version uint64) step { return func(x *Index) { x.Feed.Wrote(v(version)) } }
	wroteDelete := func(version uint64) step { return func(x *Index) { x.Feed.WroteDelete(ip(a), version, 0) } }
	list := func(version uint64, of ...uint64) step {
		return func(x *Index) {
			var all []lease.Lease
			for _, n := range of {
				all = append(all, v(n))
			}
			x.Feed.Replace(all, version)
		}
	}
	reached := func(version uint64) step { return func(x *Index) { x.Feed.Reached(version) } }
	for name, tc := range map[string]struct {
		steps []step
		want  uint64 // version shown, 0 for none
		notes int    // deletes that the watch has not confirmed
	}{
		"the watch alone":                       {[]step{watched(1), watched(3)}, 3, 0},
		"an event twice":                        {[]step{watched(3), watched(3)}, 3, 0},
		"an older event":                        {[]step{watched(3), watched(1)}, 3, 0},
		"own write before its event":            {[]step{watched(1), wrote(3), watched(3)}, 3, 0},
		"own write after its event":             {[]step{watched(1), watched(3), wrote(3)}, 3, 0},
		"own write, event of the one before":    {[]step{wrote(3), watched(2)}, 3, 0},
		"own write after somebody else's":       {[]step{watched(5), wrote(3)}, 5, 0},
		"own writes out of order":               {[]step{wrote(5), wrote(3)}, 5, 0},
		"own write after its delete":            {[]step{watched(3), watchedDelete(5), wrote(3)}, 0, 0},
		"own write after delete and bookmark":   {[]step{watchedDelete(5), reached(9), wrote(7)}, 0, 0},
		"own write ahead of the watch":          {[]step{watchedDelete(5), wrote(7)}, 7, 0},
		"deleted and made anew":                 {[]step{watched(3), watchedDelete(5), watched(7)}, 7, 0},
		"event of before a delete":              {[]step{watched(3), watchedDelete(5), watched(3)}, 0, 0},
		"delete of before an event":             {[]step{watched(7), watchedDelete(5)}, 7, 0},
		"delete of before an own write":         {[]step{watched(3), wrote(7), watchedDelete(5)}, 7, 0},
		"own delete":                            {[]step{watched(3), wroteDelete(3)}, 0, 1},
		"own delete, then its event":            {[]step{watched(3), wroteDelete(3), watchedDelete(5)}, 0, 0},
		"own delete after its event":            {[]step{watched(3), watchedDelete(5), wroteDelete(3)}, 0, 0},
		"own delete, late event":                {[]step{wrote(3), wroteDelete(3), watched(3)}, 0, 1},
		"own delete, late event, then its own":  {[]step{wrote(3), wroteDelete(3), watched(3), watchedDelete(5)}, 0, 0},
		"own delete of a version not seen":      {[]step{watched(1), wroteDelete(3)}, 0, 1},
		"own delete, late answer":               {[]step{watched(1), wroteDelete(3), wrote(3)}, 0, 1},
		"own delete of nothing, late answer":    {[]step{wroteDelete(3), wrote(3)}, 0, 1},
		"own delete of an older version":        {[]step{watched(5), wroteDelete(3)}, 5, 0},
		"own delete, made anew by us":           {[]step{watched(3), wroteDelete(3), wrote(7), watchedDelete(5)}, 7, 0},
		"own delete, made anew by others":       {[]step{watched(3), wroteDelete(3), watchedDelete(5), watched(7)}, 7, 0},
		"two own deletes, event of the first":   {[]step{watched(3), wroteDelete(3), wrote(7), wroteDelete(7), watchedDelete(5)}, 0, 1},
		"two own deletes, both events":          {[]step{watched(3), wroteDelete(3), wrote(7), wroteDelete(7), watchedDelete(5), watched(7), watchedDelete(9)}, 0, 0},
		"list":                                  {[]step{list(4, 3)}, 3, 0},
		"list without it":                       {[]step{watched(3), list(4)}, 0, 0},
		"list, newer own write":                 {[]step{wrote(7), list(5, 3)}, 7, 0},
		"list without it, newer own write":      {[]step{wrote(7), list(5)}, 7, 0},
		"list, own delete not in it yet":        {[]step{watched(3), wroteDelete(3), list(4, 3)}, 0, 1},
		"list, own delete in it":                {[]step{watched(3), wroteDelete(3), list(6)}, 0, 0},
		"list, made anew after own delete":      {[]step{watched(3), wroteDelete(3), list(8, 7)}, 7, 0},
		"list of before a delete":               {[]step{watched(3), watchedDelete(5), list(4, 3)}, 0, 0},
		"list of before an event":               {[]step{watched(3), list(2)}, 3, 0},
		"own write that the list has overtaken": {[]step{list(6), wrote(5)}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(pool(t, "a", "10.0.0.0/24", []string{a}))
			for i, step := range tc.steps {
				before := x.Feed.Seen()
				step(x)
				if x.Feed.Seen() < before {
					t.Fatalf("step %d: the watch went back from %d to %d", i+1, before, x.Feed.Seen())
				}
			}
			want := lease.Lease{Addr: ip(a)}
			if tc.want > 0 {
				want = v(tc.want)
			}
			got, ok := x.Leases.Get(ip(a))
			if diff := cmp.Diff(want, got, equal); diff != "" || ok != (tc.want > 0) {
				t.Errorf("Get (-want +got), %v:\n%s", ok, diff)
			}
			_, lost := x.Leases.Missing(ip(a)) // it was held when it went
			if free := x.Pools.Counts("a", now).Free == 1; free != (tc.want == 0 && !lost) {
				t.Errorf("free = %v", free)
			}
			if len(x.core.state.Progress.Deleted) != tc.notes {
				t.Errorf("%d deletes are kept in mind, want %d", len(x.core.state.Progress.Deleted), tc.notes)
			}
		})
	}
}

// takenAt is a lease that was taken with a version, by a time of its own.
func takenAt(addr string, version uint64) lease.Lease {
	l := leased(addr, "a", version)
	l.Updated = now.Add(time.Duration(version) * time.Second)
	return l
}

// Every change is told once, with what was there before.
func TestSubscribe(t *testing.T) {
	x := New()
	type change struct{ Old, New lease.Lease }
	var got []change
	x.Feed.Subscribe(func(old, new lease.Lease) {
		x.Leases.Len() // outside the lock
		got = append(got, change{old, new})
	})
	none := lease.Lease{Addr: ip("10.0.0.9")}
	v := func(version uint64) lease.Lease { return takenAt("10.0.0.9", version) }
	x.Feed.Wrote(v(1))
	x.Feed.Watched(v(1))
	x.Feed.Watched(v(2))
	x.Feed.Wrote(v(2))
	x.Feed.WatchedDelete(ip("10.0.0.9"), 3)
	x.Feed.WatchedDelete(ip("10.0.0.9"), 4)
	x.Feed.Replace([]lease.Lease{v(5)}, 6)
	x.Feed.Replace([]lease.Lease{v(5)}, 6)
	x.Feed.WroteDelete(ip("10.0.0.9"), 5, 0)
	x.Feed.Replace(nil, 8)
	x.Feed.Wrote(v(9))
	x.Feed.Replace(nil, 10)
	want := []change{{none, v(1)}, {v(1), v(2)}, {v(2), none}, {none, v(5)}, {v(5), none}, {none, v(9)}, {v(9), none}}
	if diff := cmp.Diff(want, got, equal); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// An object that others write, as kubectl label does, keeps its place among the leases of its container.
func TestBoundOfWhatOthersWrite(t *testing.T) {
	first := leased("10.0.0.9", "a", 3)
	at := func(version uint64, changes ...func(*lease.Lease)) lease.Lease {
		l := first
		l.Version = version
		for _, change := range changes {
			change(&l)
		}
		return l
	}
	for name, tc := range map[string]struct {
		next []lease.Lease
		want uint64
	}{
		"labelled":               {[]lease.Lease{at(7)}, 3},
		"labelled, then deleted": {[]lease.Lease{at(7), at(9, func(l *lease.Lease) { l.Deleting = true })}, 3},
		"written for its holder": {[]lease.Lease{at(7, func(l *lease.Lease) { l.BoundVersion = 2 })}, 2},
		"another container":      {[]lease.Lease{at(7, func(l *lease.Lease) { l.ContainerID = "c2" })}, 7},
		"another interface":      {[]lease.Lease{at(7, func(l *lease.Lease) { l.IfName = "net1" })}, 7},
		"given up, and back":     {[]lease.Lease{at(7, func(l *lease.Lease) { l.Updated = l.Updated.Add(1) })}, 7},
		"free in between":        {[]lease.Lease{available("10.0.0.9", "a", 5), at(7)}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			x := New()
			x.Pools.SetPool(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.9"}))
			x.Feed.Watched(first)
			for _, l := range tc.next {
				x.Feed.Watched(l)
			}
			if l, ok := x.Leases.Get(first.Addr); !ok || l.Bound() != tc.want {
				t.Errorf("bound with version %d, want %d", l.Bound(), tc.want)
			}
		})
	}
}

package index

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// What the index shows after the store was put back to version 5 while the watch had reached 9.
func TestRestart(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.1-10.0.0.6"}))
	same, newer, gone, moved := leased("10.0.0.1", "a", 3), leased("10.0.0.2", "a", 8), leased("10.0.0.3", "a", 7),
		leased("10.0.0.4", "a", 9)
	for _, l := range []lease.Lease{same, available("10.0.0.5", "a", 4), gone, newer, moved} {
		x.Feed.Watched(l)
	}
	x.Feed.WroteDelete(ip("10.0.0.5"), 4, 0)
	x.MarkUnknown(ip("10.0.0.6"), 0, "key", now)
	told := make(chan error, 1)
	go func() { told <- x.Feed.WaitSeen(t.Context(), 12) }()
	for x.waiting() == 0 { // until it waits
	}
	older := leased("10.0.0.4", "a", 2)
	older.PodUID = "another"
	x.Feed.ResetTo([]lease.Lease{same, available("10.0.0.2", "a", 1), older, available("10.0.0.5", "a", 4)}, 5)

	if err := <-told; !errors.Is(err, ipam.ErrReset) {
		t.Errorf("who waited is told %v", err)
	}
	if x.Feed.Seen() != 5 || x.Unknown("") != nil && len(x.Unknown("")) > 0 {
		t.Errorf("seen %d, doubts %v", x.Feed.Seen(), x.Unknown(""))
	}
	for addr, want := range map[string]struct {
		version uint64
		lost    bool
	}{
		"10.0.0.1": {3, false}, "10.0.0.2": {1, true}, "10.0.0.3": {0, true}, "10.0.0.4": {2, false}, "10.0.0.5": {4, false},
	} {
		l, _ := x.Leases.Get(ip(addr))
		if _, lost := x.Leases.Missing(ip(addr)); l.Version != want.version || lost != want.lost {
			t.Errorf("%s: version %d, lost %v; want %d, %v", addr, l.Version, lost, want.version, want.lost)
		}
	}
	checkFreeSets(t, x)
	x.Feed.Watched(leased("10.0.0.2", "a", 6)) // the new versions count
	if _, lost := x.Leases.Missing(ip("10.0.0.2")); lost || x.Feed.Seen() != 6 {
		t.Errorf("after the next event: lost %v, seen %d", lost, x.Feed.Seen())
	}
	if err := x.Feed.WaitSeen(context.Background(), 6); err != nil {
		t.Error(err)
	}
}

// A store that was put back and whose versions were raised shows itself by a list that is behind what was known.
func TestListBehindItsOwnVersion(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.1-10.0.0.2"}))
	x.Feed.Watched(leased("10.0.0.1", "a", 8))
	x.Feed.Wrote(leased("10.0.0.2", "a", 2000)) // newer than the list: of which store, nobody knows
	if !x.Feed.Replace([]lease.Lease{available("10.0.0.1", "a", 3), available("10.0.0.2", "a", 4)}, 1000) {
		t.Error("the restore is not noticed")
	}
	if l, _ := x.Leases.Get(ip("10.0.0.1")); l.Version != 3 {
		t.Errorf("the index shows version %d", l.Version)
	}
	if _, lost := x.Leases.Missing(ip("10.0.0.1")); !lost {
		t.Error("what was held before is not lost")
	}
	if _, lost := x.Leases.Missing(ip("10.0.0.2")); !lost {
		t.Error("what was held by the newer write is not lost")
	}
	if x.Feed.Replace([]lease.Lease{available("10.0.0.1", "a", 3), available("10.0.0.2", "a", 4)}, 1001) {
		t.Error("the next list counts as a restore, too")
	}
	x.Feed.Watched(leased("10.0.0.2", "a", 2000))
	if l, _ := x.Leases.Get(ip("10.0.0.2")); l.Version != 2000 || l.Epoch != 1 {
		t.Errorf("delivered after all: version %d of epoch %d", l.Version, l.Epoch)
	}
	checkFreeSets(t, x)
}

func (x *Index) waiting() int {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return len(x.core.state.Progress.Waiters)
}

// The copy to which the store was put back names earlier holders: who has the address now has it still.
func TestRestartToEarlierHolders(t *testing.T) {
	const a = "10.0.0.1"
	since := func(l lease.Lease, container string, s int) lease.Lease {
		l.ContainerID, l.Updated = container, at(s)
		return l
	}
	of := func(pod, container string, version uint64, s int) lease.Lease {
		l := since(leased(a, "a", version), container, s)
		l.PodName, l.PodUID = pod, "uid-of-"+pod
		return l
	}
	live := of("web-0", "c2", 9, 9)
	kept := live
	kept.State, kept.Holder, kept.Retention = lease.Reserved, lease.Holder{IfName: lease.DefaultIfName},
		lease.Retention{Claim: "shop/web", Fixed: true}
	free := available(a, "a", 9)
	free.Updated = at(9)
	for name, tc := range map[string]struct {
		known, stored lease.Lease
		lost          bool
		container     string
	}{
		"an earlier container of the pod": {live, of("web-0", "c1", 3, 3), true, "c2"},
		"an earlier pod":                  {live, of("web-9", "c1", 3, 3), true, "c2"},
		"kept for a claim since":          {kept, of("web-9", "c1", 3, 3), true, ""},
		"the same":                        {of("web-0", "c2", 3, 9), of("web-0", "c2", 3, 9), false, "c2"},
		"known to be free":                {free, of("web-9", "c1", 3, 3), false, "c1"}, // no replica is sure to know the last holder
		"known of late":                   {of("web-9", "c1", 4, 2), of("web-9", "c1", 4, 3), false, "c1"},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(pool(t, "a", "10.0.0.0/24", []string{a}))
			x.Feed.Watched(tc.known)
			x.Feed.Watched(leased("10.0.0.9", "b", 20))
			x.Feed.ResetTo([]lease.Lease{tc.stored}, 5)
			check := func(version uint64, lost bool) {
				t.Helper()
				got, _ := x.Leases.Get(ip(a))
				if _, is := x.Leases.Missing(ip(a)); is != lost || got.ContainerID != tc.container || got.Version != version {
					t.Errorf("lost %v, container %q, version %d; want %v, %q, %d", is, got.ContainerID, got.Version, lost,
						tc.container, version)
				}
				if x.Pools.Counts("a", now).Free != 0 {
					t.Error("it is free")
				}
				checkFreeSets(t, x)
			}
			check(tc.stored.Version, tc.lost)
			if !tc.lost {
				return
			}
			if _, waits := x.Leases.MissingOf(tc.known.Holder); waits != (tc.known.State == lease.Active) {
				t.Errorf("its holder waits: %v", waits)
			}
			x.Feed.Watched(of("web-0", "c0", 7, 5)) // by a replica that knew less
			check(7, true)
			l, _ := x.Leases.Missing(ip(a))
			now, _ := x.Leases.Get(ip(a))
			written := lease.Restore(l, now)
			written.Version = 8
			x.Feed.Wrote(written)
			check(8, false)
		})
	}
}

// Whoever knows only the earlier holder that the copy names, and releases what that one had, takes nothing from the
// one who has the address now. A release of his own counts.
func TestEarlierHolderIsReleasedAfterARestart(t *testing.T) {
	const a = "10.0.0.1"
	held := func(container string, version uint64, s int) lease.Lease {
		l := leased(a, "a", version)
		l.ContainerID, l.PodName, l.PodUID, l.Updated = container, container, "uid-of-"+container, at(s)
		return l
	}
	released := func(l lease.Lease, s int) lease.Lease {
		next, _ := lease.Release(l, at(s), lease.Change{})
		next.Version++
		return next
	}
	live := held("now", 9, 9)
	for name, tc := range map[string]struct {
		stored  lease.Lease   // what the list has
		watched []lease.Lease // what comes then
		lost    bool
	}{
		"before the list":        {released(held("then", 3, 3), 12), nil, true},
		"after it":               {held("then", 3, 3), []lease.Lease{released(held("then", 5, 3), 12)}, true},
		"his own, before":        {released(held("now", 3, 9), 12), nil, false},
		"his own, after":         {held("now", 3, 9), []lease.Lease{released(held("now", 5, 9), 12)}, false},
		"somebody has it since":  {held("next", 4, 13), nil, false},
		"released by one of now": {released(held("later", 3, 11), 12), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(pool(t, "a", "10.0.0.0/24", []string{a}))
			x.Feed.Watched(live)
			x.Feed.Watched(leased("10.0.0.9", "b", 20))
			x.Feed.ResetTo([]lease.Lease{tc.stored}, 4)
			for _, l := range tc.watched {
				x.Feed.Watched(l)
			}
			if l, lost := x.Leases.Missing(ip(a)); lost != tc.lost || lost && l.ContainerID != "now" {
				t.Errorf("lost %v, to container %q; want %v", lost, l.ContainerID, tc.lost)
			}
			checkFreeSets(t, x)
		})
	}
}

// What a request learns about an earlier epoch is not taken for news of this one: a version of then would hide what
// comes.
func TestAnswersAcrossARestart(t *testing.T) {
	const a, b = "10.0.0.1", "10.0.0.2"
	for what, late := range map[string]func(x *Index, was lease.Lease){
		"gone":    func(x *Index, was lease.Lease) { x.Feed.WroteDelete(was.Addr, was.Version, was.Epoch) },
		"written": func(x *Index, was lease.Lease) { was.Version++; x.Feed.Wrote(was) },
	} {
		t.Run(what, func(t *testing.T) {
			x := indexOf(pool(t, "a", "10.0.0.0/24", []string{a + "-10.0.0.2"}))
			x.Feed.Watched(available(a, "a", 1000))
			was, _ := x.Leases.Get(ip(a))
			x.Feed.ResetTo([]lease.Lease{available(b, "a", 3)}, 5)
			late(x, was)
			x.Feed.Watched(leased(a, "a", 7))
			if l, _ := x.Leases.Get(ip(a)); l.Version != 7 || l.State != lease.Active || l.Epoch != 1 {
				t.Errorf("the index shows %s, version %d of epoch %d", l.State, l.Version, l.Epoch)
			}
			if l, _ := x.Leases.Get(ip(b)); l.Epoch != 1 {
				t.Errorf("what was listed is of epoch %d", l.Epoch)
			}
			checkFreeSets(t, x)
		})
	}
}

// Two writes of one version are of two histories of the store.
func TestVersionWrittenTwice(t *testing.T) {
	const a = "10.0.0.1"
	held := func(container string, s int) lease.Lease {
		l := leased(a, "a", 8)
		l.ContainerID, l.Updated = container, at(s)
		return l
	}
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{a}))
	x.Feed.Watched(held("before", 1))
	if !x.Feed.Replace([]lease.Lease{held("since", 2)}, 9) {
		t.Error("the restore is not noticed")
	}
	if l, _ := x.Leases.Get(ip(a)); l.ContainerID != "since" {
		t.Errorf("the index shows %s", l.ContainerID)
	}
	if !x.Feed.Replace([]lease.Lease{held("copy", 1)}, 10) {
		t.Error("the second restore is not noticed")
	}
	if l, _ := x.Leases.Get(ip(a)); l.ContainerID != "since" { // which is written again
		t.Errorf("the index shows %s", l.ContainerID)
	}
	if x.Feed.Replace([]lease.Lease{held("copy", 1)}, 11) {
		t.Error("the next list counts as a restore, too")
	}
}

// A machine that migrates has what was known of both its attachments, whichever of them an older store does not have,
// or has still.
func TestRestoredWhileMigrating(t *testing.T) {
	const a = "10.0.0.1"
	one := func(container string, s int) lease.Lease {
		l := leased(a, "a", 3)
		l.ContainerID, l.PodName, l.PodUID, l.Updated = container, container, "uid-of-"+container, at(s)
		l.Host = ip(map[string]string{"c1": host1, "c2": host2}[container])
		return l
	}
	both := func(s int) lease.Lease {
		l, second := one("c1", s), one("c2", s).Holder
		l.Other = &second
		return l
	}
	for name, tc := range map[string]struct {
		known, stored lease.Lease
		lost          bool
		containers    []string
	}{
		"to before the migration":           {both(9), one("c1", 3), true, []string{"c1", "c2"}},
		"from after it to before it":        {one("c2", 12), one("c1", 3), true, []string{"c2"}},
		"from after it to the midst":        {one("c2", 12), both(9), true, []string{"c2"}},
		"from after it failed to the midst": {one("c1", 12), both(9), true, []string{"c1"}},
		"within the migration":              {both(9), both(9), false, []string{"c1", "c2"}},
		"a replica that did not know of it": {one("c1", 3), both(9), false, []string{"c1", "c2"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(pool(t, "a", "10.0.0.0/24", []string{a}))
			tc.known.Version = 9
			x.Feed.Watched(tc.known)
			x.Feed.Watched(leased("10.0.0.9", "b", 20))
			x.Feed.ResetTo([]lease.Lease{tc.stored}, 5)
			check := func(lost bool) {
				t.Helper()
				l, _ := x.Leases.Get(ip(a))
				var has []string
				for side := range l.Attachments() {
					has = append(has, side.ContainerID)
					if by := x.Leases.ByContainer(side.ContainerID, ""); len(by) != 1 || by[0].ContainerID != side.ContainerID {
						t.Errorf("by container %s: %+v", side.ContainerID, by)
					}
				}
				if _, is := x.Leases.Missing(ip(a)); is != lost || !slices.Equal(has, tc.containers) {
					t.Errorf("lost %v, %v have it; want %v, %v", is, has, lost, tc.containers)
				}
				for _, c := range []string{"c1", "c2"} {
					h := one(c, 0).Holder
					_, waits := x.Leases.MissingOf(h)
					if want := lost && slices.Contains(tc.containers, c); waits != want {
						t.Errorf("%s waits: %v, want %v", c, waits, want)
					}
				}
				checkFreeSets(t, x)
				checkPlaces(t, x)
			}
			check(tc.lost)
			if !tc.lost {
				return
			}
			l, _ := x.Leases.Missing(ip(a))
			now, _ := x.Leases.Get(ip(a))
			written := lease.Restore(l, now)
			written.Version = 8
			x.Feed.Wrote(written)
			check(false)
		})
	}
}

// Another content at the version of the entry shows that the store was put back. An object of another version shows
// nothing: it may have been read before the entry came, or after.
func TestRewritten(t *testing.T) {
	x := New()
	held := leased("10.0.0.9", "a", 5)
	held.Updated = at(5)
	x.Feed.Watched(held)
	other := leased("10.0.0.9", "a", 5)
	other.Updated, other.PodUID = at(6), "another"
	earlier, later := other, other
	earlier.Version, later.Version = 4, 6
	for name, tc := range map[string]struct {
		l    lease.Lease
		want bool
	}{
		"itself":               {held, false},
		"another":              {other, true},
		"an earlier version":   {earlier, false},
		"a later version":      {later, false},
		"an address of nobody": {leased("10.0.0.10", "a", 5), false},
	} {
		if got := x.Feed.Rewritten(tc.l); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// A list that shows another object at the version of an entry begins another epoch: what was decided on before cannot
// be told from what is there by its version.
func TestAnotherObjectAtTheSameVersion(t *testing.T) {
	x := New()
	held := leased("10.0.0.9", "a", 5)
	held.Updated = at(5)
	free := available("10.0.0.10", "a", 6)
	x.Feed.Replace([]lease.Lease{held, free}, 7)
	if epoch := x.Feed.Epoch(); epoch != 0 || x.Feed.Replace([]lease.Lease{held, free}, 8) {
		t.Fatalf("epoch %d after lists of one store", epoch)
	}
	held.Updated, held.PodUID = at(6), "another"
	if !x.Feed.Replace([]lease.Lease{held, free}, 9) || x.Feed.Epoch() != 1 {
		t.Errorf("epoch %d", x.Feed.Epoch())
	}
	for _, l := range []lease.Lease{held, free} {
		if got, _ := x.Leases.Get(l.Addr); got.Epoch != 1 || got.PodUID != l.PodUID {
			t.Errorf("%s: epoch %d, pod %s", l.Addr, got.Epoch, got.PodUID)
		}
	}
}

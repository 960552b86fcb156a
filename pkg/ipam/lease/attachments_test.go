package lease

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The pods of a virtual machine that migrates from host1 to host2, and the address that is kept for it.
const host2 = "192.168.0.2"

var machine = Retention{Claim: "shop/vm", PodPrimaryKey: "shop/vm", Fixed: true}

func source(change ...func(*Lease)) Lease {
	return held(Active, append([]func(*Lease){func(l *Lease) { l.Retention, l.SetSize = machine, 0 }}, change...)...)
}

func target(change ...func(*Holder)) Holder {
	return holder(append([]func(*Holder){func(h *Holder) {
		h.Host, h.ContainerID, h.PodName, h.PodUID, h.SetSize, h.UIDNamed = ip(host2), "c2", "web-2", "u2", 0, true
	}}, change...)...)
}

// both is the address while the machine migrates, seen from the source.
func both(change ...func(*Lease)) Lease {
	second := target()
	return source(append([]func(*Lease){func(l *Lease) { l.Other, l.BoundVersion = &second, 6 }}, change...)...)
}

// TestAttach: who gets a second attachment.
func TestAttach(t *testing.T) {
	for name, tc := range map[string]struct {
		from Lease
		to   Holder
		kept Retention
		ok   bool
	}{
		"the target":                 {source(), target(), machine, true},
		"of an address made again":   {source(func(l *Lease) { l.ContainerID = "" }), target(), machine, true},
		"a third pod":                {both(), target(uid("u3"), container("c3")), machine, false},
		"the source itself":          {source(), holder(), machine, false},
		"the source's new container": {source(), holder(container("c9")), machine, false},
		"the target again":           {both(), target(), machine, false},
		"of no container":            {source(), target(container("")), machine, false},
		"another interface":          {source(), target(ifName("net1")), machine, false},
		"another slot":               {source(), target(func(h *Holder) { h.Slot = 1 }), machine, false},
		"another namespace":          {source(), target(func(h *Holder) { h.Namespace = "bank" }), machine, false},
		"another claim":              {source(), target(), Retention{Claim: "shop/x", PodPrimaryKey: "shop/vm"}, false},
		"another key":                {source(), target(), Retention{Claim: "shop/vm", PodPrimaryKey: "x"}, false},
		"no claim": {source(func(l *Lease) { l.Retention = Retention{} }), target(), Retention{},
			false},
		"an app's": {source(func(l *Lease) { l.PodPrimaryKey = "" }), target(), Retention{Claim: "shop/vm"}, false},
		"an owner's": {source(func(l *Lease) { l.Owner, l.PodUID = "vm", "" }), target(),
			machine, false},
		"for an owner":  {source(), target(owner("vm")), machine, false},
		"being deleted": {source(deleting), target(), machine, false},
		"reserved":      {held(Reserved, func(l *Lease) { l.Retention = machine }), target(), machine, false},
		"free":          {held(Available), target(), machine, false},
	} {
		t.Run(name, func(t *testing.T) {
			next, ok := Attach(tc.from, tc.to, tc.kept, now)
			if ok != tc.ok {
				t.Fatalf("ok %t", ok)
			}
			if !ok {
				if diff := cmp.Diff(tc.from, next, equal); diff != "" {
					t.Errorf("refused, and changed:\n%s", diff)
				}
				return
			}
			want := tc.from
			from := want.Holder
			want.Holder, want.Other, want.FromSecond, want.Updated = tc.to, &from, true, now
			from.BoundVersion = tc.from.Bound()
			if diff := cmp.Diff(want, next, equal); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// named is the container of each attachment of a lease, in order; its state where nobody has it.
func named(l Lease) (all []string) {
	if l.State != Active {
		return []string{l.State.String()}
	}
	for side := range l.Attachments() {
		all = append(all, side.ContainerID)
	}
	return all
}

// TestEvents is the table of states and events of ADR 38, as far as a lease knows of them.
func TestEvents(t *testing.T) {
	of := func(id string) func(Lease) bool {
		return func(l Lease) bool { return l.State == Active && l.ContainerID == id }
	}
	on := func(host string) func(Lease) bool {
		return func(l Lease) bool { return l.State == Active && l.Host == ip(host) }
	}
	end := func(match func(Lease) bool, how func(Lease, Change) (Lease, bool)) func(Lease) Lease {
		return func(l Lease) Lease {
			if _, some := l.From(match); !some {
				return l
			}
			next, _ := how(l, Change{})
			return next
		}
	}
	release := func(match func(Lease) bool) func(Lease) Lease {
		return end(match, func(l Lease, c Change) (Lease, bool) { return EndWhere(l, match, now, c, Release) })
	}
	free := func(match func(Lease) bool) func(Lease) Lease {
		return end(match, func(l Lease, c Change) (Lease, bool) { return EndWhere(l, match, now, c, Free) })
	}
	attach := func(h Holder) func(Lease) Lease {
		return func(l Lease) Lease { next, _ := Attach(l, h, machine, now); return next }
	}
	bind := func(h Holder) func(Lease) Lease {
		return func(l Lease) Lease {
			from, _ := l.From(func(l Lease) bool { return l.SameAttachment(h) })
			next, _ := Bind(from, l.Params, h, machine, now)
			return next
		}
	}
	everybody := func(Lease) bool { return true }
	targetOnly := func() Lease { return release(of("c1"))(both()) }
	reserved := func() Lease { return release(of("c2"))(targetOnly()) }
	states := []struct {
		name string
		from func() Lease
	}{
		{"source only", func() Lease { return source() }}, {"both", func() Lease { return both() }},
		{"target only", targetOnly}, {"reserved", reserved},
	}
	for name, tc := range map[string]struct {
		event func(Lease) Lease
		want  [4][]string
	}{
		"DEL of the source":    {release(of("c1")), [4][]string{{"Reserved"}, {"c2"}, {"c2"}, {"Reserved"}}},
		"DEL of the target":    {release(of("c2")), [4][]string{{"c1"}, {"c1"}, {"Reserved"}, {"Reserved"}}},
		"DEL of another":       {release(of("c7")), [4][]string{{"c1"}, {"c1", "c2"}, {"c2"}, {"Reserved"}}},
		"ADD of the target":    {attach(target()), [4][]string{{"c1", "c2"}, {"c1", "c2"}, {"c2"}, {"Reserved"}}},
		"ADD of a third pod":   {attach(target(uid("u3"), container("c3"))), [4][]string{{"c1", "c3"}, {"c1", "c2"}, {"c2", "c3"}, {"Reserved"}}},
		"new source container": {bind(holder(container("c8"))), [4][]string{{"c8"}, {"c8", "c2"}, {"c2"}, {"c8"}}},
		"new target container": {bind(target(container("c9"))), [4][]string{{"c1"}, {"c1", "c9"}, {"c9"}, {"c9"}}},
		"release of host 1":    {release(on(host1)), [4][]string{{"Reserved"}, {"c2"}, {"c2"}, {"Reserved"}}},
		"release of host 2":    {release(on(host2)), [4][]string{{"c1"}, {"c1"}, {"Reserved"}, {"Reserved"}}},
		"release by hand":      {release(everybody), [4][]string{{"Reserved"}, {"Reserved"}, {"Reserved"}, {"Available"}}},
		"given back by galaxy": {free(everybody), [4][]string{{"Available"}, {"Available"}, {"Available"}, {"Available"}}},
		"a duplicate is freed": {free(of("c2")), [4][]string{{"c1"}, {"c1"}, {"Available"}, {"Reserved"}}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, s := range states {
				for _, turned := range []bool{false, true} {
					from := s.from()
					if turned {
						from = from.Turned()
					}
					once := tc.event(from)
					if got := named(once); !slices.Equal(got, tc.want[i]) {
						t.Errorf("%s: %v, want %v", s.name, got, tc.want[i])
					}
					if name == "release by hand" {
						continue // the next time by hand gives it back
					}
					if got := named(tc.event(once)); !slices.Equal(got, tc.want[i]) {
						t.Errorf("%s, twice: %v, want %v", s.name, got, tc.want[i])
					}
				}
			}
		})
	}
}

// TestClaimDeleted: the terms are those of the address, whoever of the two ends last.
func TestClaimDeletedWhileMigrating(t *testing.T) {
	l, ok := ChangeRetention(both(), Retention{})
	if !ok || !slices.Equal(named(l), []string{"c1", "c2"}) {
		t.Fatalf("%v, %t", named(l), ok)
	}
	l, _ = Release(l, now, Change{})
	if l, _ = Release(l, now, Change{}); l.State != Available || l.HeldFinalizer {
		t.Errorf("%+v", l)
	}
}

// TestEnded: what the lease is for the pod that stays.
func TestEnded(t *testing.T) {
	l := both()
	stays, _ := Release(l, now, Change{Verb: VerbReleaseHost})
	if stays.Bound() != stays.Version || stays.State != Active || !stays.HeldFinalizer || stays.Retention != machine ||
		!stays.UIDNamed {
		t.Errorf("the target has %+v", stays)
	}
	if p, _ := stays.History.Last(); p.Holder != "shop/web" || p.Host != ip(host1) || p.Verb != VerbReleaseHost {
		t.Errorf("the history begins with %+v", p)
	}
	stays, _ = Release(l.Turned(), now, Change{})
	if stays.Bound() != l.Bound() || stays.ContainerID != "c1" {
		t.Errorf("the source has %+v", stays)
	}
	if p, _ := stays.History.Last(); p.Holder != "shop/web-2" || p.Host != ip(host2) {
		t.Errorf("the history begins with %+v", p)
	}
}

// asIs returns an attachment as it is after a write for the other one.
func asIs(l Lease) Holder {
	h := l.Holder
	h.BoundVersion = l.Bound()
	return h
}

// TestAttachmentsStaySound: whatever happens in whichever order, an address has one or two attachments of different
// pods while it is in use, none otherwise, and no event of one of them changes the other.
func TestAttachmentsStaySound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := source()
		second := 0
		t.Repeat(map[string]func(*rapid.T){
			"attach": func(t *rapid.T) {
				second++
				h := target(uid(rapid.SampledFrom([]string{"u1", "u2", "u3"}).Draw(t, "uid")),
					container(rapid.SampledFrom([]string{"c1", "c2", "c3"}).Draw(t, "container")))
				if next, ok := Attach(l, h, machine, at(second)); ok {
					l = next
				}
			},
			"turn": func(*rapid.T) { l = l.Turned() },
			"end": func(t *rapid.T) {
				id := rapid.SampledFrom([]string{"c1", "c2", "c3", "c9"}).Draw(t, "ends")
				match := func(l Lease) bool { return l.State == Active && l.ContainerID == id }
				from, some := l.From(match)
				if !some {
					return
				}
				two, other := from.Other != nil, asIs(from.Turned())
				next, changed := EndWhere(l, match, at(second), Change{}, Release)
				if !changed || two && (next.State != Active || next.Other != nil || !cmp.Equal(next.Holder, other, equal)) {
					t.Fatalf("%+v became %+v", l, next)
				}
				l = next
			},
			"new container": func(t *rapid.T) {
				h := l.Holder
				if h.ContainerID = rapid.SampledFrom([]string{"c1", "c2", "c3", "c9"}).Draw(t, "new"); l.State != Active {
					return
				}
				if l.Other != nil && l.Other.ContainerID == h.ContainerID {
					return // a container is of one pod
				}
				two, other := l.Other != nil, asIs(l.Turned())
				if next, ok := Bind(l, l.Params, h, l.Retention, at(second)); ok {
					if (next.Other != nil) != two || two && !cmp.Equal(*next.Other, other, equal) {
						t.Fatalf("the other one became %+v", next.Other)
					}
					l = next
				}
			},
			"again": func(*rapid.T) {
				if next, ok := Bind(l, l.Params, holder(), machine, at(second)); ok && l.State == Reserved {
					l = next
				}
			},
			"": func(t *rapid.T) {
				if l.Other == nil {
					if l.FromSecond {
						t.Fatal("seen from an attachment that is not there")
					}
					return
				}
				if l.State != Active || l.SameAttachment(*l.Other) || l.Other.ContainerID == "" {
					t.Fatalf("%s: %+v beside %+v", l.State, l.Holder, *l.Other)
				}
				if diff := cmp.Diff(l, l.Turned().Turned(), equal); diff != "" {
					t.Fatalf("turned twice:\n%s", diff)
				}
			},
		})
	})
}

// TestBoundOfEach: each of two attachments has the version with which its container got the address, whatever is
// written for the other one.
func TestBoundOfEach(t *testing.T) {
	l := source(func(l *Lease) { l.Version, l.BoundVersion = 7, 5 })
	step := func(next Lease, ok bool) {
		t.Helper()
		if !ok {
			t.Fatal("refused")
		}
		next.Version = l.Version + 1
		l = next
	}
	by := func(id string) Lease {
		from, _ := l.From(func(l Lease) bool { return l.ContainerID == id })
		return from
	}
	bound := func(want map[string]uint64) {
		t.Helper()
		got := map[string]uint64{}
		for side := range l.Attachments() {
			got[side.ContainerID] = side.Bound()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("as of version %d, -want +got:\n%s", l.Version, diff)
		}
	}
	step(Attach(l, target(), machine, now))
	bound(map[string]uint64{"c1": 5, "c2": 8})
	step(ChangeRetention(l, Retention{Claim: "shop/vm", PodPrimaryKey: "shop/vm"}))
	bound(map[string]uint64{"c1": 5, "c2": 8})
	step(Bind(by("c1"), l.Params, holder(container("c3")), machine, now))
	bound(map[string]uint64{"c3": 10, "c2": 8})
	step(Bind(by("c2"), l.Params, target(container("c4")), machine, now))
	bound(map[string]uint64{"c3": 10, "c4": 11})
	step(Bind(by("c4"), l.Params, target(container("c4"), uid("u3")), machine, now))
	bound(map[string]uint64{"c3": 10, "c4": 11})
	step(Release(by("c3"), now, Change{}))
	bound(map[string]uint64{"c4": 11})
	step(Attach(by("c4"), holder(container("c5"), uid("u5")), machine, now))
	bound(map[string]uint64{"c4": 11, "c5": 14})
	step(Release(by("c5"), now, Change{}))
	bound(map[string]uint64{"c4": 11})
	step(Release(l, now, Change{}))
	bound(map[string]uint64{"": 16})
}

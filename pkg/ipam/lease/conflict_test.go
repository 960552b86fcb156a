package lease

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const mac = "02:00:5e:10:00:01"

// contested is a lease of held that nothing keeps, with a report.
func contested(s State, c *Conflict, change ...func(*Lease)) Lease {
	l := held(s, change...)
	if l.Retention = (Retention{}); s == Reserved && c != nil {
		l.Updated = c.At
	}
	l.Conflict = c
	return l
}

// quarantine is a report of some hours ago that was followed by a quarantine of so many.
func quarantine(ago, hours int) *Conflict {
	since := at(-3600 * ago)
	return &Conflict{mac, ip(host1), "c0", since, ConflictQuarantined, since.Add(time.Duration(hours) * time.Hour)}
}

// Who holds an address loses it to the quarantine, in one write, for an hour or twice as long as the last time.
func TestQuarantine(t *testing.T) {
	kept := Retention{Claim: "shop/web", Fixed: true}
	for what, test := range map[string]struct {
		from  Lease
		hours int // 0 for refused
	}{
		"the first report":                     {contested(Active, nil), 1},
		"of a claim that keeps nothing":        {contested(Active, nil, func(l *Lease) { l.Retention = Retention{Claim: "shop/web"} }), 1},
		"whose object is being deleted":        {contested(Active, nil, deleting), 1},
		"the second":                           {contested(Active, quarantine(2, 1)), 2},
		"the third":                            {contested(Active, quarantine(4, 2)), 4},
		"the sixth":                            {contested(Active, quarantine(30, 16)), 24},
		"the seventh":                          {contested(Active, quarantine(30, 24)), 24},
		"a day after the last one was over":    {contested(Active, quarantine(25, 1)), 1},
		"less than a day after it":             {contested(Active, quarantine(24, 1)), 2},
		"after a report that a brake stopped":  {contested(Active, &Conflict{MAC: mac, At: at(-60), Outcome: ConflictReleased}), 1},
		"an end before the beginning, by hand": {contested(Active, quarantine(2, -3)), 1},
		"an address that nobody has":           {contested(Available, nil), 0},
		"one that is quarantined":              {contested(Reserved, quarantine(0, 1)), 0},
		"one that was set aside":               {contested(Reserved, nil), 0},
		"one that a claim keeps": {func() Lease {
			l := contested(Active, nil)
			l.Retention = kept
			return l
		}(), 0},
		"one that was asked for by name": {contested(Active, nil, func(l *Lease) { l.AddressNamed = true }), 0},
		"one of two pods":                {contested(Active, nil, func(l *Lease) { l.Other = &Holder{ContainerID: "c2"} }), 0},
	} {
		t.Run(what, func(t *testing.T) {
			got, ok := Quarantine(test.from, mac, now)
			if ok != (test.hours > 0) {
				t.Fatalf("quarantined: %v", ok)
			}
			if !ok {
				if diff := cmp.Diff(test.from, got, equal); diff != "" {
					t.Errorf("a refusal changed it:\n%s", diff)
				}
				return
			}
			until := now.Add(time.Duration(test.hours) * time.Hour)
			want := test.from
			want.State, want.Holder, want.Retention, want.Updated, want.HeldFinalizer = Reserved, Holder{}, Retention{}, now, true
			want.Conflict = &Conflict{mac, ip(host1), "c1", now, ConflictQuarantined, until}
			want.History = test.from.History.Add(Past{
				Holder: "shop/web", Host: ip(host1), Since: at(-60), Until: now, Change: Change{
					Verb: VerbConflict, By: mac, Reason: "answered for it; nobody gets it until " + until.Format(time.RFC3339),
				},
			})
			if diff := cmp.Diff(want, got, equal); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !got.IsQuarantined() || got.IsSetAside() || got.IsRetained() {
				t.Error("it is not quarantined")
			}
			if got.QuarantineOver(until.Add(-1)) || !got.QuarantineOver(until) {
				t.Error("it is over at another time")
			}
		})
	}
}

// Nobody gets a quarantined address, and no DEL frees it. When it is free again the report stays, unless somebody
// ended it by hand.
func TestQuarantineEnds(t *testing.T) {
	l, _ := Quarantine(contested(Active, nil), mac, now)
	if _, ok := Bind(l, newParams, holder(), Retention{Claim: "shop/web", Fixed: true}, at(1)); ok {
		t.Error("it is given away")
	}
	if _, ok := ChangeRetention(l, Retention{Claim: "shop/web", Fixed: true}); ok {
		t.Error("a claim keeps it")
	}
	if _, ok := Quarantine(l, mac, at(1)); ok {
		t.Error("it is quarantined twice")
	}
	free, ok := Free(l, at(3600), Change{})
	if !ok || free.State != Available || free.Conflict != l.Conflict || free.HeldFinalizer {
		t.Errorf("over: %+v", free)
	}
	byHand, ok := Free(l, at(3600), Change{Verb: VerbRelease, By: "ann"})
	if !ok || byHand.State != Available || byHand.Conflict != nil {
		t.Errorf("ended by hand: %+v", byHand)
	}
	aside, ok := Reserve(free, newParams, at(3700), Change{Verb: VerbReserve, By: "ann"})
	if !ok || aside.IsQuarantined() || !aside.IsSetAside() || aside.QuarantineOver(at(1<<20)) {
		t.Error("what was set aside since is quarantined")
	}
	for hours, want := range map[int]*Conflict{2: l.Conflict, 24: l.Conflict, 25: nil} {
		next, ok := Bind(free, newParams, holder(), Retention{}, now.Add(time.Duration(hours)*time.Hour))
		if !ok || next.Conflict != want {
			t.Errorf("given away %d hours after the report: %+v", hours, next.Conflict)
		}
	}
}

// An operator sets a quarantined address aside: it does not become free with the quarantine. No claim gets it.
func TestReserveQuarantined(t *testing.T) {
	l, _ := Quarantine(contested(Active, nil), mac, now)
	if next, ok := ReserveFor(l, newParams, Retention{Claim: "shop/web", Fixed: true}, at(1), Change{}); ok {
		t.Errorf("a claim got %+v", next)
	}
	byHand := Change{Verb: VerbReserve, By: "ann"}
	next, ok := Reserve(l, newParams, l.Updated, byHand)
	if !ok || !next.IsSetAside() || next.QuarantineOver(at(1<<20)) || next.Conflict == nil || !next.HeldFinalizer {
		t.Errorf("%t: %+v", ok, next)
	}
	if _, ok := Reserve(next, newParams, at(2), byHand); ok {
		t.Error("it was set aside twice")
	}
}

// Where a brake holds the quarantine back, the holder gives the address up.
func TestContest(t *testing.T) {
	from := contested(Active, nil)
	got, ok := Contest(from, mac, now)
	if !ok || got.State != Available || got.HeldFinalizer || got.ContainerID != "" || got.IsQuarantined() {
		t.Fatalf("%v: %+v", ok, got)
	}
	if diff := cmp.Diff(&Conflict{mac, ip(host1), "c1", now, ConflictReleased, time.Time{}}, got.Conflict, equal); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if last, _ := got.History.Last(); last.Verb != VerbConflict || last.Holder != "shop/web" {
		t.Errorf("history: %+v", last)
	}
	for what, l := range map[string]Lease{
		"free": contested(Available, nil), "reserved": contested(Reserved, nil),
		"named": contested(Active, nil, func(l *Lease) { l.AddressNamed = true }),
	} {
		if _, ok := Contest(l, mac, now); ok {
			t.Errorf("%s: given up", what)
		}
	}
}

// Who keeps an address has it still, and the report is written once a minute.
func TestNoteConflict(t *testing.T) {
	named := func(l *Lease) { l.AddressNamed = true }
	got, ok := NoteConflict(contested(Active, nil, named), mac, now)
	want := contested(Active, &Conflict{mac, ip(host1), "c1", now, ConflictKept, time.Time{}}, named)
	want.BoundVersion = 7
	if diff := cmp.Diff(want, got, equal); !ok || diff != "" {
		t.Errorf("%v; -want +got:\n%s", ok, diff)
	}
	for what, test := range map[string]struct {
		l    Lease
		mac  string
		at   int
		want bool
	}{
		"again at once":          {got, mac, 59, false},
		"again after a minute":   {got, mac, 60, true},
		"another MAC":            {got, "02:00:5e:10:00:02", 1, true},
		"one that is given up":   {contested(Active, nil), mac, 0, false},
		"one that nobody has":    {contested(Available, nil), mac, 0, false},
		"one that two pods have": {contested(Active, nil, named, func(l *Lease) { l.Other = &Holder{ContainerID: "c2"} }), mac, 0, false},
	} {
		if _, ok := NoteConflict(test.l, test.mac, at(test.at)); ok != test.want {
			t.Errorf("%s: noted %v", what, ok)
		}
	}
}

// The network of a container is that which it named; a newer container of the pod names its own.
func TestBindKeepsTheNetwork(t *testing.T) {
	from := held(Active, func(l *Lease) { l.CNINetwork, l.Retention = "pods", Retention{} })
	network := func(name string) func(*Holder) { return func(h *Holder) { h.CNINetwork = name } }
	for what, test := range map[string]struct {
		from Lease
		h    Holder
		want string
	}{
		"a free address":                       {held(Available), holder(network("a")), "a"},
		"another UID of the pod":               {from, holder(uid("u2")), "pods"},
		"another UID, another network":         {from, holder(uid("u2"), network("a")), "a"},
		"a newer container":                    {from, holder(container("c2"), network("a")), "a"},
		"a newer container that names none":    {from, holder(container("c2")), ""},
		"a request that names no container":    {from, holder(container(""), network("a")), "pods"},
		"a free address, by one without names": {held(Available), holder(), ""},
	} {
		if got, ok := Bind(test.from, newParams, test.h, Retention{}, now); !ok || got.CNINetwork != test.want {
			t.Errorf("%s: %v, network %q, want %q", what, ok, got.CNINetwork, test.want)
		}
	}
}

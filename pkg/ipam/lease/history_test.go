package lease

import (
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func aPast(t *rapid.T) Past {
	when := func(label string) time.Time { return fromSeconds(rapid.Int64Range(0, 1<<33).Draw(t, label)) }
	p := Past{
		Holder: rapid.OneOf(rapid.SampledFrom([]string{"shop/web-0", "shop/web-1", ""}), rapid.StringN(0, 30, MaxPastHolder)).
			Draw(t, "holder"),
		Since: when("since"), Until: when("until"),
		Change: Change{
			Verb:   rapid.SampledFrom([]string{"", VerbRelease, VerbReserve, "of a newer release"}).Draw(t, "verb"),
			By:     rapid.StringN(0, 10, MaxPastBy).Draw(t, "by"),
			Reason: rapid.StringN(0, 20, MaxPastReason).Draw(t, "reason"),
		},
	}
	p.PodUID = rapid.SampledFrom([]string{
		"", "f1e2d3c4-b5a6-4798-8796-a5b4c3d2e1f0", "F1E2D3C4-B5A6-4798-8796-A5B4C3D2E1F0", "static-0123",
	}).Draw(t, "uid")
	p.IfName = rapid.SampledFrom([]string{"", "net1"}).Draw(t, "ifname")
	if rapid.Bool().Draw(t, "host known") {
		p.Host = rapid.SampledFrom([]netip.Addr{ip(host1), ip("192.168.0.2"), ip("2001:db8::9")}).Draw(t, "host")
	}
	return p
}

// What is put into a history comes out again, newest first, and no more than it holds.
func TestHistoryKeepsTheLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h History
		var want []Past
		for range rapid.IntRange(0, 6).Draw(t, "entries") {
			p := aPast(t)
			h = h.Add(p)
			want = append([]Past{p}, want...)
			want = want[:min(len(want), MaxHistory)]
		}
		last := true // who had the address last is known by the UID of the pod
		for i, p := range want {
			if !last || p.Holder == "" || p.PodUID == "" {
				want[i].PodUID, want[i].IfName = "", ""
			}
			last = last && p.Holder == ""
		}
		if diff := cmp.Diff(want, h.Entries(), equal, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("history (-want +got):\n%s", diff)
		}
		if again := NewHistory(h.Entries()); again != h {
			t.Errorf("packed anew it is %q, not %q", again, h)
		}
	})
}

func TestHistoryCutsLongTexts(t *testing.T) {
	long := strings.Repeat("ö", 500)
	got := History("").Add(Past{Holder: long, Change: Change{Verb: long, By: long, Reason: long}}).Entries()[0]
	for what, tc := range map[string]struct {
		text string
		most int
	}{
		"holder": {got.Holder, MaxPastHolder}, "verb": {got.Verb, MaxPastVerb}, "by": {got.By, MaxPastBy}, "reason": {got.Reason, MaxPastReason},
	} {
		if len(tc.text) > tc.most || len(tc.text) < tc.most-3 || !utf8.ValidString(tc.text) ||
			!strings.HasSuffix(tc.text, "ö…") {
			t.Errorf("%s is %q, %d bytes, at most %d", what, tc.text, len(tc.text), tc.most)
		}
	}
}

// Who loses an address stands in its history; what is done to a free one by hand does, too.
func TestTransitionsWriteHistory(t *testing.T) {
	since, until := at(-60), at(0)
	by := Change{Verb: VerbRelease, By: "alice", Reason: "rack 7 is off"}
	active := held(Active, func(l *Lease) { l.Updated = since })
	for name, tc := range map[string]struct {
		do   func() (Lease, bool)
		want []Past
	}{
		"the holder gives it up": {
			func() (Lease, bool) { return Release(active, until, Change{}) },
			[]Past{{Holder: active.Who(), PodUID: active.PodUID, Host: active.Host, Since: since, Until: until}},
		},
		"it is taken away": {
			func() (Lease, bool) { return Release(active, until, by) },
			[]Past{{Holder: active.Who(), PodUID: active.PodUID, Host: active.Host, Since: since, Until: until, Change: by}},
		},
		"a reservation ends by itself": {
			func() (Lease, bool) { return Release(held(Reserved), until, Change{}) }, nil,
		},
		"it is set aside": {
			func() (Lease, bool) { return Reserve(held(Available), newParams, until, by) },
			[]Past{{Until: until, Change: by}},
		},
		"it is set free": {
			func() (Lease, bool) { return Release(held(Reserved), until, by) },
			[]Past{{Until: until, Change: by}},
		},
		"it is given": {
			func() (Lease, bool) { return Bind(held(Available), newParams, holder(), Retention{}, until) }, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			next, ok := tc.do()
			if !ok {
				t.Fatal("refused")
			}
			whole := cmp.Comparer(func(a, b time.Time) bool { return a.Unix() == b.Unix() })
			if diff := cmp.Diff(tc.want, next.History.Entries(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
				whole); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReserve(t *testing.T) {
	c := Change{Verb: VerbReserve, By: "alice", Reason: "printer"}
	for name, tc := range map[string]struct {
		from Lease
		want bool
	}{
		"an address without object": {Lease{Addr: ip("10.0.0.9")}, true},
		"Available":                 {held(Available), true},
		"Available, deleting":       {held(Available, deleting), false},
		"Active":                    {held(Active), false},
		"Reserved":                  {held(Reserved), false},
	} {
		t.Run(name, func(t *testing.T) {
			want := tc.from
			if tc.want {
				want.State, want.Params, want.Updated, want.HeldFinalizer = Reserved, newParams, now, true
				want.History = History("").Add(Past{Until: now, Change: c})
			}
			next, ok := Reserve(tc.from, newParams, now, c)
			if ok != tc.want {
				t.Errorf("ok = %v", ok)
			}
			if diff := cmp.Diff(want, next, equal); diff != "" {
				t.Errorf("lease (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReserveFor(t *testing.T) {
	sticky := Retention{Claim: "shop/web", Fixed: true}
	c := Change{Verb: VerbReserve, By: "claim shop/web"}
	next, ok := ReserveFor(held(Available), newParams, sticky, now, c)
	if !ok || !next.IsRetained() || next.Retention != sticky || !next.HeldFinalizer || next.Params != newParams ||
		next.Who() != (Holder{}).Who() {
		t.Errorf("%v, %+v", ok, next)
	}
	if bound, ok := Bind(next, newParams, Holder{PodUID: "u", IfName: "net1", Slot: 2},
		Retention{Claim: "shop/web", PodPrimaryKey: "web-0", Fixed: true}, now); !ok || bound.PodPrimaryKey != "web-0" {
		t.Errorf("a pod of the claim does not get it: %+v", bound)
	}
	if _, ok := Bind(next, newParams, Holder{PodUID: "u", IfName: "eth0"}, Retention{Claim: "shop/other", Fixed: true},
		now); ok {
		t.Error("a pod of another claim gets it")
	}
	if freed, ok := Free(next, now, Change{}); !ok || !freed.CoolsUntil(time.Hour).IsZero() {
		t.Errorf("nobody had it, and it rests: %+v", freed)
	}
	for name, l := range map[string]Lease{
		"Active": held(Active), "Reserved": held(Reserved), "deleting": held(Available, deleting),
	} {
		if next, ok := ReserveFor(l, newParams, sticky, now, c); ok || next.State != l.State {
			t.Errorf("%s: %v, %+v", name, ok, next)
		}
	}
	for name, s := range map[string]Retention{
		"no claim": {Fixed: true}, "a claim that keeps nothing": {Claim: "shop/web"},
	} {
		if next, ok := ReserveFor(held(Available), newParams, s, now, c); ok || next.State != Available {
			t.Errorf("%s: %v, %+v", name, ok, next)
		}
	}
}

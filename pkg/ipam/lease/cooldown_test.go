package lease

import (
	"testing"
	"time"
)

// Which changes an address rests after, and until when to the nanosecond.
func TestRestsUntil(t *testing.T) {
	byHand := Change{Verb: VerbRelease, By: "ann"}
	must := func(l Lease, ok bool) Lease {
		t.Helper()
		if !ok {
			t.Fatalf("%+v could not be changed so", l)
		}
		return l
	}
	reserve := func(l Lease, seconds int) Lease {
		t.Helper()
		return must(Reserve(l, l.Params, at(seconds), Change{Verb: VerbReserve, By: "ann"}))
	}
	unreserve := func(l Lease, seconds int) Lease {
		t.Helper()
		return must(Release(l, at(seconds), Change{Verb: VerbUnreserve, By: "ann"}))
	}
	inUse, fresh := held(Active), Lease{Addr: ip("10.0.0.9"), Version: 1}
	gaveUp, _ := Release(inUse, at(10), Change{})
	half := 500 * time.Millisecond
	odd, _ := Release(inUse, at(10).Add(half), Change{})
	handed, _ := Release(inUse, at(10), byHand)
	toggled := fresh
	for i := range MaxHistory {
		toggled = unreserve(reserve(toggled, 2*i), 2*i+1)
	}
	foreign := fresh
	foreign.Updated = at(10)
	for name, tc := range map[string]struct {
		lease Lease
		want  time.Time
	}{
		"no object":                              {lease: Lease{Addr: ip("10.0.0.9")}},
		"never used":                             {lease: fresh},
		"in use":                                 {lease: inUse},
		"set aside":                              {lease: reserve(gaveUp, 11)},
		"given up":                               {lease: gaveUp, want: at(40)},
		"given up, in fractions of a second":     {lease: odd, want: at(40).Add(half)},
		"released by hand":                       {lease: handed, want: at(40)},
		"given up in a release without history":  {lease: foreign, want: at(40)},
		"set aside and back, never used":         {lease: unreserve(reserve(fresh, 3), 5)},
		"set aside and back since it was used":   {lease: unreserve(reserve(gaveUp, 15), 20), want: at(41)},
		"set aside and back after half a second": {lease: unreserve(reserve(odd, 15), 20), want: at(41)},
		"by hand so often that nobody knows":     {lease: toggled, want: at(2*MaxHistory - 1 + 30)},
	} {
		if got := tc.lease.CoolsUntil(30 * time.Second); !got.Equal(tc.want) {
			t.Errorf("%s: rests until %s, want %s", name, got, tc.want)
		}
		if got := tc.lease.CoolsUntil(0); !got.IsZero() {
			t.Errorf("%s: rests until %s although there is no cooldown", name, got)
		}
	}
}

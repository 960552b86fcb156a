package lease

import (
	"net/netip"
	"testing"
	"time"
)

func TestPass(t *testing.T) {
	at := time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)
	owned := Lease{
		Addr: netip.MustParseAddr("10.0.0.1"), State: Active, Version: 7, HeldFinalizer: true, Updated: at,
		Holder: Holder{Owner: "service/shop/a", Namespace: "shop", IfName: "IPv4", StartedAt: at, BoundVersion: 3},
	}
	with := func(change func(*Lease)) Lease { l := owned; change(&l); return l }
	for name, tc := range map[string]struct {
		from Lease
		ok   bool
	}{
		"an owner's":            {owned, true},
		"one that goes":         {with(func(l *Lease) { l.Deleting = true }), true},
		"the other one's":       {with(func(l *Lease) { l.Owner = "service/shop/b" }), false},
		"a pod's":               {with(func(l *Lease) { l.Owner, l.PodName = "", "a" }), false},
		"one that nobody holds": {with(func(l *Lease) { l.State, l.Holder = Available, Holder{} }), false},
	} {
		next, ok := Pass(tc.from, "service/shop/b", at.Add(time.Hour))
		if ok != tc.ok {
			t.Errorf("%s: %v", name, ok)
		}
		if !ok {
			continue
		}
		if next.Owner != "service/shop/b" || next.IfName != "IPv4" || next.State != Active || next.BoundVersion != 0 ||
			!next.StartedAt.Equal(at.Add(time.Hour)) || !next.HeldFinalizer {
			t.Errorf("%s: %+v", name, next)
		}
		if next.History.LastHolder() != "service/shop/a" {
			t.Errorf("%s: the history has %q", name, next.History.LastHolder())
		}
	}
}

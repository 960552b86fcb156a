package lease

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var (
	oldParams = Params{Pool: "old", Bits: 24, Gateway: ip("10.0.0.1")}
	newParams = Params{Pool: "new", Bits: 25, Gateway: ip("10.0.0.126")}
)

// held is a lease in the given state, with what goes along with it.
func held(s State, change ...func(*Lease)) Lease {
	l := Lease{Addr: ip("10.0.0.9"), Version: 7, State: s, Params: oldParams, Updated: at(-60), Foreign: true}
	if s == Active {
		l.Holder = Holder{
			Host: ip(host1), ContainerID: "c1", IfName: "eth0", Namespace: "shop", PodName: "web", PodUID: "u1",
			SetSize: 2, StartedAt: at(-61),
		}
	}
	if s != Available {
		l.HeldFinalizer = true
		l.Retention = Retention{Fixed: true, PodPrimaryKey: "shop/web", ExpiredTime: "later"}
	}
	for _, c := range change {
		c(&l)
	}
	return l
}

func deleting(l *Lease)                     { l.Deleting = true }
func superseded(ids ...string) func(*Lease) { return func(l *Lease) { l.Superseded = ids } }

// holder is the one of an Active lease of held, changed.
func holder(change ...func(*Holder)) Holder {
	h := Holder{
		Host: ip(host1), ContainerID: "c1", IfName: "eth0", Namespace: "shop", PodName: "web", PodUID: "u1",
		SetSize: 1, StartedAt: at(-1),
	}
	for _, c := range change {
		c(&h)
	}
	return h
}

func container(id string) func(*Holder) { return func(h *Holder) { h.ContainerID = id } }
func uid(uid string) func(*Holder)      { return func(h *Holder) { h.PodUID = uid } }
func ifName(name string) func(*Holder)  { return func(h *Holder) { h.IfName = name } }
func owner(name string) func(*Holder) {
	return func(h *Holder) { h.Owner, h.PodName, h.PodUID, h.Namespace = name, "", "", "" }
}

func TestBind(t *testing.T) {
	// became is an Active lease of the holder, as Bind makes it from the given one.
	became := func(from Lease, p Params, h Holder, superseded ...string) *Lease {
		if from.State == Active && from.ContainerID == h.ContainerID {
			h.BoundVersion = from.Version
		}
		from.State, from.Params, from.Holder, from.Updated, from.HeldFinalizer = Active, p, h, now, true
		from.Superseded, from.Retention = superseded, Retention{}
		return &from
	}
	on := func(s Retention, l *Lease) *Lease { l.Retention = s; return l }
	shop, web := Retention{Claim: "shop/web", Fixed: true},
		Retention{Claim: "shop/web", PodPrimaryKey: "shop/web-0", Fixed: true}
	kept := func(s Retention, change ...func(*Lease)) Lease {
		return held(Reserved, append([]func(*Lease){func(l *Lease) {
			l.Retention = s
			l.Holder = Holder{IfName: "eth0", Namespace: "shop", PodName: "web-0"}
		}}, change...)...)
	}
	for name, tc := range map[string]struct {
		from   Lease
		to     Holder
		sticky Retention
		want   *Lease // nil: refused
	}{
		"Available, on the terms of a claim": {from: held(Available), to: holder(), sticky: web, want: on(web, became(held(Available), newParams, holder()))},
		"kept for the pod":                   {from: kept(web), to: holder(), sticky: web, want: on(web, became(kept(web), newParams, holder()))},
		"kept for the pod, with a term": {
			from: kept(Retention{Claim: "shop/web", PodPrimaryKey: "shop/web-0", Fixed: true, ExpiredTime: "later"}),
			to:   holder(), sticky: web,
			want: on(web, became(kept(web), newParams, holder())),
		},
		"kept for the claim":                         {from: kept(shop), to: holder(), sticky: shop, want: on(shop, became(kept(shop), newParams, holder()))},
		"kept for the claim, to one pod of it":       {from: kept(shop), to: holder(), sticky: web, want: on(web, became(kept(shop), newParams, holder()))},
		"kept before anybody asked":                  {from: kept(shop, func(l *Lease) { l.Holder = Holder{} }), to: holder(), sticky: shop, want: on(shop, became(kept(shop), newParams, holder()))},
		"kept for a pod, to the claim as a whole":    {from: kept(web), to: holder(), sticky: shop},
		"kept for another pod":                       {from: kept(web), to: holder(), sticky: Retention{Claim: "shop/web", PodPrimaryKey: "shop/web-1", Fixed: true}},
		"kept for another claim":                     {from: kept(shop), to: holder(), sticky: Retention{Claim: "shop/db", Fixed: true}},
		"kept for a claim, without one":              {from: kept(shop), to: holder()},
		"kept for another interface":                 {from: kept(web), to: holder(ifName("net1")), sticky: web},
		"kept for the pod, deleting":                 {from: kept(web, deleting), to: holder(), sticky: web},
		"Active, the same container takes new terms": {from: held(Active), to: holder(), sticky: web, want: on(web, became(held(Active), oldParams, holder()))},

		"an address without object": {
			from: Lease{Addr: ip("10.0.0.9")}, to: holder(),
			want: became(Lease{Addr: ip("10.0.0.9")}, newParams, holder()),
		},
		"Available": {from: held(Available), to: holder(), want: became(held(Available), newParams, holder())},
		"Available forgets superseded containers of somebody else": {
			from: held(Available, superseded("x")), to: holder(func(h *Holder) { h.Superseded = []string{"y"} }),
			want: became(held(Available), newParams, holder()),
		},
		"Available to an owner": {
			from: held(Available), to: holder(owner("vm-1"), container("")),
			want: became(held(Available), newParams, holder(owner("vm-1"), container(""))),
		},
		"Available, deleting": {from: held(Available, deleting), to: holder()},
		"Reserved":            {from: held(Reserved), to: holder()},
		"Reserved, deleting":  {from: held(Reserved, deleting), to: holder()},
		"Active, deleting":    {from: held(Active, deleting), to: holder()},

		"Active, the same container again": {from: held(Active), to: holder(), want: became(held(Active), oldParams, holder())},
		"Active, the same container keeps the superseded": {
			from: held(Active, superseded("c0")), to: holder(), want: became(held(Active), oldParams, holder(), "c0"),
		},
		"Active, same container, other UID": {
			from: held(Active), to: holder(uid("u2")), want: became(held(Active), oldParams, holder(uid("u2"))),
		},
		"Active, same container, no UID": {
			from: held(Active), to: holder(uid("")), want: became(held(Active), oldParams, holder(uid(""))),
		},
		"Active, other container, same UID": {
			from: held(Active), to: holder(container("c2")),
			want: became(held(Active), oldParams, holder(container("c2")), "c1"),
		},
		"Active, other container, same UID, four superseded": {
			from: held(Active, superseded("a", "b", "c", "d")), to: holder(container("c2")),
			want: became(held(Active), oldParams, holder(container("c2")), "b", "c", "d", "c1"),
		},
		"Active, other container, same UID, too many superseded": {
			from: held(Active, superseded("z", "a", "b", "c", "d")), to: holder(container("c2")),
			want: became(held(Active), oldParams, holder(container("c2")), "b", "c", "d", "c1"),
		},
		"Active, a superseded container comes back": {from: held(Active, superseded("c0")), to: holder(container("c0"))},
		"Active, no container, same UID": {
			from: held(Active), to: holder(container("")), want: became(held(Active), oldParams, holder()),
		},
		"Active without container, same UID": {
			from: held(Active, func(l *Lease) { l.ContainerID = "" }), to: holder(),
			want: became(held(Active, func(l *Lease) { l.ContainerID = "" }), oldParams, holder()),
		},
		"Active, other container, other UID":           {from: held(Active), to: holder(container("c2"), uid("u2"))},
		"Active, other container, no UID":              {from: held(Active), to: holder(container("c2"), uid(""))},
		"Active without UID, other container":          {from: held(Active, func(l *Lease) { l.PodUID = "" }), to: holder(container("c2"))},
		"Active, neither container nor UID":            {from: held(Active), to: holder(container(""), uid(""))},
		"Active without both, to one without both":     {from: held(Active, func(l *Lease) { l.ContainerID, l.PodUID = "", "" }), to: holder(container(""), uid(""))},
		"Active, same UID, other interface":            {from: held(Active), to: holder(container("c2"), ifName("net1"))},
		"Active, same container, other interface":      {from: held(Active), to: holder(ifName("net1"))},
		"Active, a pod's, to an owner":                 {from: held(Active), to: holder(owner("vm-1"), container(""))},
		"Active, a pod's, to an owner, same container": {from: held(Active), to: holder(owner("vm-1"))},
		"Active, an owner's, to a pod":                 {from: ownersLease("vm-1", ""), to: holder()},
		"Active, an owner's, to a pod, same container": {from: ownersLease("vm-1", "c1"), to: holder()},
		"Active, an owner's, to a container, same one": {from: ownersLease("vm-1", "c1"), to: holder(uid(""))},
		"Active, an owner's, to another":               {from: ownersLease("vm-1", ""), to: holder(owner("vm-2"), container(""))},
		"Active, an owner's, to the same": {
			from: ownersLease("vm-1", ""), to: holder(owner("vm-1"), container("")),
			want: became(ownersLease("vm-1", ""), oldParams, holder(owner("vm-1"), container(""))),
		},
		"Active, an owner's, to the same in a new container": {
			from: ownersLease("vm-1", "c1"), to: holder(owner("vm-1"), container("c2")),
			want: became(ownersLease("vm-1", ""), oldParams, holder(owner("vm-1"), container("c2")), "c1"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.from
			next, ok := Bind(tc.from, newParams, tc.to, tc.sticky, now)
			want := tc.from
			if tc.want != nil {
				want = *tc.want
			}
			if ok != (tc.want != nil) {
				t.Errorf("ok = %v", ok)
			}
			if diff := cmp.Diff(want, next, equal); diff != "" {
				t.Errorf("lease (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.from, equal); diff != "" {
				t.Errorf("the lease given was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func ownersLease(name, container string) Lease {
	return held(Active, func(l *Lease) { owner(name)(&l.Holder); l.ContainerID = container })
}

// Rebinding again and again keeps the last four containers and never touches the slice of an earlier lease.
func TestBindBoundsSuperseded(t *testing.T) {
	l, ok := Bind(held(Available), oldParams, holder(container("c0")), Retention{}, now)
	if !ok {
		t.Fatal("refused")
	}
	var all []string
	for i := range 20 {
		before := l
		all = append(all, l.ContainerID)
		if l, ok = Bind(l, oldParams, holder(container(fmt.Sprint("c", i+1))), Retention{}, now); !ok {
			t.Fatalf("container %d was refused", i+1)
		}
		if diff := cmp.Diff(all[max(0, len(all)-MaxSuperseded):], l.Superseded); diff != "" {
			t.Fatalf("superseded after %d (-want +got):\n%s", i+1, diff)
		}
		for _, id := range l.Superseded {
			if _, ok := Bind(l, oldParams, holder(container(id)), Retention{}, now); ok {
				t.Fatalf("superseded container %s got the address back", id)
			}
		}
		if diff := cmp.Diff(all[max(0, len(all)-1-MaxSuperseded):len(all)-1], before.Superseded,
			cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the earlier lease was changed (-want +got):\n%s", diff)
		}
	}
}

// Renew changes nothing but when the holder's request began, and that only forwards.
func TestRenew(t *testing.T) {
	l := held(Active)
	want := l
	want.StartedAt, want.BoundVersion = at(-1), l.Version
	for what, test := range map[string]struct {
		from Lease
		to   *Lease
		at   int
	}{
		"later":            {l, &want, -1},
		"at the same time": {l, nil, -61},
		"earlier":          {l, nil, -62},
		"reserved":         {held(Reserved), nil, -1},
		"free":             {held(Available), nil, -1},
	} {
		got, ok := Renew(test.from, at(test.at))
		if ok != (test.to != nil) {
			t.Errorf("%s: %v", what, ok)
		}
		if test.to == nil {
			test.to = &test.from
		}
		if diff := cmp.Diff(*test.to, got, equal); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// Of the pods that take each other's place under one key only the one on the same terms succeeds.
func TestSucceed(t *testing.T) {
	web := Retention{Claim: "shop/web", PodPrimaryKey: "shop/web-0", Fixed: true}
	l := held(Active, func(l *Lease) { l.Retention = web })
	successor := holder(container("c2"), uid("u2"))
	for name, tc := range map[string]struct {
		from   Lease
		to     Holder
		sticky Retention
		ok     bool
	}{
		"the next pod":             {l, successor, web, true},
		"the same pod":             {l, holder(container("c2")), web, false},
		"another interface":        {l, holder(container("c2"), uid("u2"), ifName("net1")), web, false},
		"another pod":              {l, successor, Retention{Claim: "shop/web", PodPrimaryKey: "shop/web-1", Fixed: true}, false},
		"another claim":            {l, successor, Retention{Claim: "shop/db", PodPrimaryKey: "shop/web-0", Fixed: true}, false},
		"for no pod in particular": {held(Active, func(l *Lease) { l.Retention = Retention{Claim: "shop/web"} }), successor, Retention{Claim: "shop/web"}, false},
		"of no claim":              {held(Active), successor, Retention{}, false},
		"deleting":                 {held(Active, deleting, func(l *Lease) { l.Retention = web }), successor, web, false},
		"Reserved":                 {held(Reserved, func(l *Lease) { l.Retention = web }), successor, web, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := TakeOver(tc.from, newParams, tc.to, tc.sticky, now)
			want := tc.from
			if tc.ok {
				want.Params, want.Holder, want.Retention, want.Updated = newParams, tc.to, tc.sticky, now
				want.History = want.History.Add(Past{Holder: l.Who(), PodUID: l.PodUID, Host: l.Host, Since: l.Updated, Until: now})
			}
			if ok != tc.ok {
				t.Errorf("ok = %v", ok)
			}
			if diff := cmp.Diff(want, got, equal); diff != "" {
				t.Errorf("lease (-want +got):\n%s", diff)
			}
		})
	}
}

// What a claim keeps is reserved for it when its holder gives it up, and free when it is given up once more.
func TestReleaseOfAClaim(t *testing.T) {
	web := Retention{Claim: "shop/web", PodPrimaryKey: "shop/web-0", Fixed: true}
	l := held(Active, func(l *Lease) { l.Retention = web })
	got, ok := Release(l, now, Change{})
	want := l
	want.State, want.Updated = Reserved, now
	want.Holder = Holder{IfName: l.IfName, Namespace: l.Namespace, PodName: l.PodName}
	want.History = want.History.Add(Past{Holder: l.Who(), PodUID: l.PodUID, Host: l.Host, Since: l.Updated, Until: now})
	if diff := cmp.Diff(want, got, equal); !ok || diff != "" {
		t.Errorf("ok = %v, lease (-want +got):\n%s", ok, diff)
	}
	if got, ok = Release(got, at(1), Change{}); !ok || got.State != Available || got.Retention != (Retention{}) ||
		got.HeldFinalizer || got.Holder.Who() != (Holder{}).Who() {
		t.Errorf("released again: %v, %+v", ok, got)
	}
	l.Fixed = false
	if got, ok = Release(l, now, Change{}); !ok || got.State != Available || got.Claim != "" {
		t.Errorf("of a claim that does not keep it: %v, %+v", ok, got)
	}
	l.Fixed = true
	if got, ok = Free(l, now, Change{}); !ok || got.State != Available || got.Claim != "" {
		t.Errorf("freed: %v, %+v", ok, got)
	}
}

func TestRestick(t *testing.T) {
	web, other := Retention{Claim: "shop/web", Fixed: true}, Retention{Claim: "shop/db", Fixed: true}
	for name, tc := range map[string]struct {
		do   func() (Lease, bool)
		want *Lease
	}{
		"an address in use": {func() (Lease, bool) { return ChangeRetention(held(Active), web) }, new(held(Active, func(l *Lease) { l.Retention, l.BoundVersion = web, l.Version }))},
		"a kept one": {func() (Lease, bool) {
			return ChangeRetention(held(Reserved, func(l *Lease) { l.Retention = other }), web)
		}, new(held(Reserved, func(l *Lease) { l.Retention = web }))},
		"the same terms": {func() (Lease, bool) { return ChangeRetention(held(Active, func(l *Lease) { l.Retention = web }), web) }, nil},
		"one set aside": {func() (Lease, bool) {
			return ChangeRetention(held(Reserved, func(l *Lease) { l.Retention = Retention{} }), web)
		}, nil},
		"kept for nobody": {func() (Lease, bool) {
			return ChangeRetention(held(Reserved, func(l *Lease) { l.Retention = other }), Retention{})
		}, nil},
		"a free one": {func() (Lease, bool) { return ChangeRetention(held(Available), web) }, nil},
	} {
		got, ok := tc.do()
		if ok != (tc.want != nil) {
			t.Errorf("%s: ok = %v", name, ok)
			continue
		}
		if tc.want == nil {
			continue
		}
		tc.want.Addr, tc.want.Version, tc.want.Foreign = got.Addr, got.Version, true
		if diff := cmp.Diff(*tc.want, got, equal); diff != "" {
			t.Errorf("%s: lease (-want +got):\n%s", name, diff)
		}
	}
}

func TestRelease(t *testing.T) {
	free := func(l Lease) Lease {
		if l.State == Active {
			l.History = l.History.Add(Past{Holder: l.Who(), PodUID: l.PodUID, Host: l.Host, Since: l.Updated, Until: now})
		}
		l.HeldFinalizer = l.HeldFinalizer && l.Deleting && l.State != Available // goes by a second release
		l.State, l.Holder, l.Retention, l.Updated = Available, Holder{}, Retention{}, now
		return l
	}
	finalizer := func(l *Lease) { l.HeldFinalizer = true }
	for name, tc := range map[string]struct {
		from        Lease
		wantChanged bool
	}{
		"an address without object":     {from: Lease{Addr: ip("10.0.0.9")}},
		"Available":                     {from: held(Available)},
		"Available, deleting":           {from: held(Available, deleting)},
		"Available with finalizer":      {from: held(Available, finalizer), wantChanged: true},
		"the same, deleting":            {from: held(Available, finalizer, deleting), wantChanged: true},
		"Active":                        {from: held(Active, superseded("c0")), wantChanged: true},
		"Active, an owner's":            {from: ownersLease("vm-1", ""), wantChanged: true},
		"Active, deleting":              {from: held(Active, deleting), wantChanged: true},
		"the same, without finalizer":   {from: held(Active, deleting, func(l *Lease) { l.HeldFinalizer = false }), wantChanged: true},
		"Active without finalizer":      {from: held(Active, func(l *Lease) { l.HeldFinalizer = false }), wantChanged: true},
		"Reserved":                      {from: held(Reserved), wantChanged: true},
		"Reserved, deleting":            {from: held(Reserved, deleting), wantChanged: true},
		"Reserved with a former holder": {from: held(Reserved, func(l *Lease) { l.Holder = holder() }), wantChanged: true},
	} {
		t.Run(name, func(t *testing.T) {
			want := tc.from
			if tc.wantChanged {
				want = free(tc.from)
			}
			next, changed := Release(tc.from, now, Change{})
			if changed != tc.wantChanged {
				t.Errorf("changed = %v", changed)
			}
			if diff := cmp.Diff(want, next, equal); diff != "" {
				t.Errorf("lease (-want +got):\n%s", diff)
			}
			again, changed := Release(next, at(1), Change{})
			if changed != next.HeldFinalizer || again.HeldFinalizer {
				t.Errorf("releasing twice: changed = %v: %+v", changed, again)
			}
		})
	}
}

func TestRefresh(t *testing.T) {
	for _, s := range []State{Available, Active, Reserved} {
		for _, gone := range []bool{false, true} {
			for name, p := range map[string]Params{"same": oldParams, "new": newParams} {
				t.Run(fmt.Sprintf("%s, deleting %v, %s values", s, gone, name), func(t *testing.T) {
					from := held(s, func(l *Lease) { l.Deleting = gone })
					want, wantChanged := from, name == "new" && !gone
					if wantChanged {
						want.Params = newParams
					}
					if wantChanged && s == Active {
						want.BoundVersion = from.Version
					}
					next, changed := Refresh(from, p)
					if changed != wantChanged {
						t.Errorf("changed = %v", changed)
					}
					if diff := cmp.Diff(want, next, equal); diff != "" {
						t.Errorf("lease (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// However often a lease is written again for its holder, it says with which version the holder got the address;
// the next holder's begins anew.
func TestBound(t *testing.T) {
	l := held(Active)
	first := l.Bound()
	again := func(change func(Lease) (Lease, bool)) {
		t.Helper()
		l.Version++
		next, ok := change(l)
		if !ok || next.Bound() != first {
			t.Errorf("%v: bound with version %d, want %d", ok, next.Bound(), first)
		}
		l = next
		l.Version++
	}
	l, _ = Refresh(l, newParams)
	again(func(l Lease) (Lease, bool) { return Refresh(l, oldParams) })
	again(func(l Lease) (Lease, bool) { return Renew(l, now) })
	again(func(l Lease) (Lease, bool) { return Bind(l, oldParams, l.Holder, Retention{}, now) })
	again(func(l Lease) (Lease, bool) { return Restore(l, Lease{Addr: l.Addr}), true })
	if next, _ := Bind(l, oldParams, holder(container("c2")), Retention{}, now); next.BoundVersion != 0 {
		t.Errorf("the next container: %d", next.BoundVersion)
	}
	if next, _ := Release(l, now, Change{}); next.BoundVersion != 0 {
		t.Errorf("released: %d", next.BoundVersion)
	}
}

func TestSameAttachment(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b Holder
		want bool
	}{
		"itself":                              {holder(), holder(), true},
		"other container of the pod":          {holder(), holder(container("c2")), true},
		"other pod":                           {holder(), holder(container("c2"), uid("u2")), false},
		"another pod of the UID":              {holder(), holder(container("c2"), func(h *Holder) { h.PodName = "other" }), false},
		"one of the UID, elsewhere":           {holder(), holder(container("c2"), func(h *Holder) { h.Namespace = "other" }), false},
		"one of the UID, name not known":      {holder(), holder(container("c2"), func(h *Holder) { h.PodName = "" }), true},
		"same container, other UID":           {holder(), holder(uid("u2")), false},
		"same container, UID not known":       {holder(), holder(uid("")), true},
		"other container, UID not known":      {holder(), holder(container("c2"), uid("")), false},
		"nothing known":                       {holder(container(""), uid("")), holder(container(""), uid("")), false},
		"other interface":                     {holder(), holder(ifName("net1")), false},
		"same owner":                          {holder(owner("a"), container("")), holder(owner("a"), container("c2")), true},
		"other owner":                         {holder(owner("a")), holder(owner("b")), false},
		"owner and pod":                       {holder(owner("a")), holder(), false},
		"owner of the name of a UID, and pod": {holder(owner("u1")), holder(), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.SameAttachment(tc.b); got != tc.want {
				t.Errorf("SameAttachment = %v", got)
			}
			if got := tc.b.SameAttachment(tc.a); got != tc.want {
				t.Errorf("SameAttachment the other way = %v", got)
			}
		})
	}
}

func TestWho(t *testing.T) {
	for want, h := range map[string]Holder{
		"shop/web":     holder(),
		"vm-1":         holder(owner("vm-1")),
		"container c1": {ContainerID: "c1"},
	} {
		if got := h.Who(); got != want {
			t.Errorf("Who() = %q, want %q", got, want)
		}
	}
}

package history

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

var (
	start = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	addr  = netip.MustParseAddr("10.1.0.20")
	here  = netip.MustParseAddr("10.0.0.11")
)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// pod is a container of a pod.
func pod(name, container string) lease.Holder {
	return lease.Holder{Namespace: "shop", PodName: name, PodUID: "uid-" + name, ContainerID: container, IfName: "eth0", Host: here}
}

// next numbers a state that was written after another one.
func next(was, is lease.Lease) lease.Lease {
	is.Version = was.Version + 1
	return is
}

func bind(t *testing.T, l lease.Lease, h lease.Holder, s lease.Retention, now time.Time) lease.Lease {
	t.Helper()
	is, ok := lease.Bind(l, lease.Params{Pool: "blue", Bits: 24}, h, s, now)
	if !ok {
		t.Fatalf("%s does not get the address", h.Who())
	}
	return next(l, is)
}

func line(r Record) string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s-%s %s %s %s %s", r.Since.Format("04:05"), r.Time.Format("04:05"), r.What,
		r.Holder(), r.By, r.Reason)), " ")
}

func TestOfLease(t *testing.T) {
	free := lease.Lease{Addr: addr, Version: 1}
	kept := lease.Retention{Claim: "shop/deploy-web", Fixed: true, PodPrimaryKey: "shop/web"}
	web := bind(t, free, pod("web", "c1"), lease.Retention{}, at(0))
	fixed := bind(t, free, pod("web", "c1"), kept, at(0))
	released, _ := lease.Release(web, at(60), lease.Change{})
	byHand, _ := lease.Release(web, at(60), lease.Change{Verb: lease.VerbRelease, By: "ann", Reason: "moved"})
	reserved, _ := lease.Reserve(free, lease.Params{Pool: "blue"}, at(5), lease.Change{Verb: lease.VerbReserve, By: "ann"})
	retained, _ := lease.Release(fixed, at(60), lease.Change{})
	retained = next(fixed, retained)
	expired, _ := lease.Free(retained, at(90), lease.Change{})
	taken, _ := lease.TakeOver(fixed, lease.Params{Pool: "blue"}, pod("web-2", "c2"), kept, at(70))
	again := bind(t, next(web, released), pod("db", "c3"), lease.Retention{}, at(80))
	back := web
	back.Version, back.Epoch = 1, 1
	for name, tc := range map[string]struct {
		was, is lease.Lease
		want    []string
	}{
		"given":                     {free, web, nil},
		"given up":                  {web, next(web, released), []string{"02:01-03:01 gave up shop/web"}},
		"released by hand":          {web, next(web, byHand), []string{"02:01-03:01 release shop/web ann moved"}},
		"reserved":                  {free, next(free, reserved), []string{"00:00-02:06 reserve ann"}},
		"kept for its claim":        {fixed, retained, []string{"02:01-03:01 gave up shop/web"}},
		"no longer kept":            {retained, next(retained, expired), []string{"03:01-03:31 no longer kept shop/web"}},
		"taken over":                {fixed, next(fixed, taken), []string{"02:01-03:11 gave up shop/web"}},
		"another container":         {web, bind(t, web, pod("web", "c9"), lease.Retention{}, at(20)), []string{"02:01-02:21 moved shop/web"}},
		"the same container":        {web, bind(t, web, pod("web", "c1"), lease.Retention{}, at(20)), nil},
		"given on between looks":    {web, again, []string{"02:01-03:01 gave up shop/web"}},
		"its object went":           {web, lease.Lease{Addr: addr}, []string{"02:01-02:01 lost shop/web"}},
		"a store that was put back": {next(web, released), back, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range OfLease(tc.was, tc.is, at(0)) {
				got = append(got, line(r))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// An address goes through random changes. Whatever part of them a watch shows, as long as it misses no more than an
// address remembers, there is one record of each holding that ended, with who had it from when until when.
func TestEveryHoldingHasOneRecord(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 7))
		l := lease.Lease{Addr: addr, Version: 1}
		shown, unseen, now := l, 0, 0
		var want, got []string
		show := func() {
			for _, r := range OfLease(shown, l, at(now)) {
				if !r.Since.IsZero() && r.What != WhatEnded {
					got = append(got, fmt.Sprint(r.Since.Sub(start), r.Time.Sub(start), r.Holder()))
				}
			}
			shown, unseen = l, 0
		}
		for step := range 60 {
			now += 1 + random.IntN(5)
			before, changed := l, false
			switch retention := (lease.Retention{Claim: "shop/web", Fixed: random.IntN(2) == 0, PodPrimaryKey: "k"}); random.IntN(5) {
			case 0, 1:
				l, changed = lease.Bind(l, lease.Params{Pool: "blue"}, pod(fmt.Sprint("web-", step), fmt.Sprint("c", step)), retention, at(now))
			case 2:
				l, changed = lease.Release(l, at(now), lease.Change{})
			case 3:
				l, changed = lease.TakeOver(l, lease.Params{Pool: "blue"}, pod(fmt.Sprint("new-", step), fmt.Sprint("n", step)), retention, at(now))
			case 4:
				l, changed = lease.Free(l, at(now), lease.Change{Verb: lease.VerbRelease, By: "ann"})
			}
			if !changed {
				l = before
				continue
			}
			l.Version = before.Version + 1
			if before.State == lease.Active && (l.State != lease.Active || l.Who() != before.Who()) {
				want = append(want, fmt.Sprint(before.Updated.Sub(start), at(now).Sub(start), before.Who()))
			}
			if unseen++; unseen == lease.MaxHistory || random.IntN(2) == 0 {
				show()
			}
		}
		show()
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

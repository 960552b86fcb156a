package index

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// One address each, so that it is clear which one a request gets.
func TestPickOrder(t *testing.T) {
	a, b, c := []string{"10.0.0.9"}, []string{"10.0.1.9"}, []string{"10.0.2.9"}
	const netA, netB, netC = "10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"
	for name, tc := range map[string]struct {
		pools []ipam.Pool
		want  []string // one request after the other
	}{
		"by name": {
			pools: []ipam.Pool{pool(t, "b", netB, b), pool(t, "a", netA, a)},
			want:  []string{"a 10.0.0.9", "b 10.0.1.9", ""},
		},
		"by priority, then name": {
			pools: []ipam.Pool{pool(t, "a", netA, a), pool(t, "b", netB, b, priority(1)), pool(t, "c", netC, c, priority(1))},
			want:  []string{"b 10.0.1.9", "c 10.0.2.9", "a 10.0.0.9", ""},
		},
		"negative priority comes last": {
			pools: []ipam.Pool{pool(t, "a", netA, a, priority(-1)), pool(t, "b", netB, b)},
			want:  []string{"b 10.0.1.9", "a 10.0.0.9", ""},
		},
		"not by what is free": {
			pools: []ipam.Pool{pool(t, "a", netA, a), pool(t, "b", netB, []string{"10.0.1.0/24"})},
			want:  []string{"a 10.0.0.9"},
		},
		"pools that hand out nothing are passed over": {
			pools: []ipam.Pool{pool(t, "a", netA, a, cordoned), pool(t, "b", netB, b, terminating), pool(t, "c", netC, c)},
			want:  []string{"c 10.0.2.9", ""},
		},
		"so are pools that cannot be used, and empty ones": {
			pools: []ipam.Pool{
				{Name: "a", Problem: "bad", Hosts: pool(t, "x", netA, nil).Hosts}, pool(t, "b", netB, nil), pool(t, "c", netC, c),
			},
			want: []string{"c 10.0.2.9", ""},
		},
		"pools of other hosts are passed over": {
			pools: []ipam.Pool{pool(t, "a", netA, a, hosts(host2)), pool(t, "b", netB, b, hosts(host2, host1))},
			want:  []string{"b 10.0.1.9", ""},
		},
		"a namespace with a pool of its own draws from it alone": {
			pools: []ipam.Pool{pool(t, "a", netA, a), pool(t, "b", netB, b, namespaces("shop", "other"))},
			want:  []string{"b 10.0.1.9", ""},
		},
		"several pools of a namespace go by priority": {
			pools: []ipam.Pool{pool(t, "a", netA, a, namespaces("shop")), pool(t, "b", netB, b, namespaces("shop"), priority(9))},
			want:  []string{"b 10.0.1.9", "a 10.0.0.9", ""},
		},
		"a pool bound to others is not for this one": {
			pools: []ipam.Pool{pool(t, "a", netA, a, namespaces("other")), pool(t, "b", netB, b)},
			want:  []string{"b 10.0.1.9", ""},
		},
		"a binding counts also where the host may not draw": {
			pools: []ipam.Pool{pool(t, "a", netA, a), pool(t, "b", netB, b, namespaces("shop"), hosts(host2))},
			want:  []string{""},
		},
		"and while the pool hands out nothing": {
			pools: []ipam.Pool{pool(t, "a", netA, a), pool(t, "b", netB, b, namespaces("shop"), cordoned)},
			want:  []string{""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(tc.pools...)
			for i, want1 := range tc.want {
				picks, refusal := x.Pick(want(), now)
				var wants []string
				if want1 != "" {
					wants = []string{want1}
				}
				if diff := cmp.Diff(wants, picked(picks)); diff != "" || (refusal == nil) != (want1 != "") {
					t.Fatalf("request %d (-want +got):\n%s\n%s", i+1, diff, refused(refusal))
				}
			}
		})
	}
}

// Changes of a pool count at once: a request finds it where it is now, and nowhere else.
func TestPickFollowsChangesOfPools(t *testing.T) {
	x := New()
	set := func(options ...option) {
		x.Pools.SetPool(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.9"}, options...))
	}
	expect := func(step string, ok bool, options ...func(*ipam.PickRequest)) {
		t.Helper()
		picks, refusal := x.Pick(want(options...), now)
		if (refusal == nil) != ok {
			t.Errorf("%s: %v, %s", step, picked(picks), refused(refusal))
		}
		for _, p := range picks {
			x.Forget(p.Current.Addr)
		}
	}
	expect("before there is a pool", false)
	set()
	expect("a pool", true)
	set(hosts(host2))
	expect("for another host", false)
	expect("for another host, there", true, onHost(host2))
	set(namespaces("other"))
	expect("for another namespace", false)
	expect("for another namespace, there", true, inNamespace("other"))
	set(network("blue"))
	expect("in a network", true, ofNetwork("blue"))
	set(network("red"))
	expect("in another network", false, ofNetwork("blue"))
	expect("in another network, there", true, ofNetwork("red"))
	set(cordoned)
	expect("cordoned", false)
	set()
	expect("a pool again", true)
	x.Pools.RemovePool("a")
	expect("removed", false)
	x.Pools.RemovePool("a")
	if len(x.Pools.All())+len(x.Pools.PoolsOf(ip(host1)))+len(x.Pools.PoolsFor("shop")) > 0 {
		t.Error("the index keeps something of a pool that was removed")
	}
	checkRules(t, x)
}

// Each pod begins its search elsewhere, always at the same place.
func TestPickSpreadsByKey(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/16", []string{"10.0.0.0/16"}))
	first := map[string]bool{}
	for i := range 100 {
		w := want(func(w *ipam.PickRequest) { w.Key = fmt.Sprint("pod", i) })
		var got [2]string
		for k := range got {
			picks, refusal := x.Pick(w, now)
			if refusal != nil {
				t.Fatal(refusal)
			}
			got[k] = picks[0].Current.Addr.String()
			x.Forget(picks[0].Current.Addr)
		}
		if got[0] != got[1] {
			t.Fatalf("the same request got %s, then %s", got[0], got[1])
		}
		first[got[0]] = true
	}
	if len(first) < 95 {
		t.Errorf("100 pods begin at %d addresses", len(first))
	}
}

// A pick carries the address as it is: the version to write to, or none.
func TestPickTellsTheCurrentObject(t *testing.T) {
	p := pool(t, "a", "10.0.0.0/24", []string{"10.0.0.9"})
	x := indexOf(p)
	picks, _ := x.Pick(want(), now)
	if diff := cmp.Diff([]ipam.Pick{{Pool: p, Current: lease.Lease{Addr: ip("10.0.0.9")}}}, picks, equal); diff != "" {
		t.Errorf("without an object (-want +got):\n%s", diff)
	}
	x.Forget(ip("10.0.0.9"))
	object := available("10.0.0.9", "a", 5)
	x.Feed.Watched(object)
	picks, _ = x.Pick(want(), now)
	if diff := cmp.Diff([]ipam.Pick{{Pool: p, Current: object}}, picks, equal); diff != "" {
		t.Errorf("with an object (-want +got):\n%s", diff)
	}
}

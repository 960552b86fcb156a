package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Two pools share 10.0.0.20-10.0.0.29. A step is a change, after which the shared part is served by
// the pool named.
func TestOverlapIsServedByOne(t *testing.T) {
	a := func(options ...option) ipam.Pool {
		return pool(t, "a", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.29"}, options...)
	}
	b := func(options ...option) ipam.Pool {
		return pool(t, "b", "10.0.0.0/24", []string{"10.0.0.20-10.0.0.39"}, options...)
	}
	type step struct {
		what   string
		change func(*Index)
		want   string
	}
	set := func(p ipam.Pool) func(*Index) { return func(x *Index) { x.Pools.SetPool(p) } }
	hold := func(pool, addr string) func(*Index) {
		return func(x *Index) { x.take(pool, addr) }
	}
	give := func(addr string) func(*Index) {
		return func(x *Index) { x.Feed.WatchedDelete(ip(addr), x.Feed.Seen()+1) }
	}
	for name, steps := range map[string][]step{
		"by age": {
			{"the younger pool alone", set(b(created(9))), "b"},
			{"the older comes", set(a(created(1))), "a"},
			{"the older goes", func(x *Index) { x.Pools.RemovePool("a") }, "b"},
		},
		"by name when of one age": {
			{"b", set(b()), "b"}, {"a", set(a()), "a"},
		},
		"leases come before age": {
			{"both", func(x *Index) { x.Pools.SetPool(a(created(1))); x.Pools.SetPool(b(created(9))) }, "a"},
			{"the younger holds one", hold("b", "10.0.0.25"), "b"},
			{"the younger holds two", hold("b", "10.0.0.26"), "b"},
			{"and gives one up", give("10.0.0.25"), "b"},
			{"and the other", give("10.0.0.26"), "a"},
		},
		"leases outside the shared part do not count": {
			{"both", func(x *Index) { x.Pools.SetPool(a(created(1))); x.Pools.SetPool(b(created(9))) }, "a"},
			{"the younger holds one of its own", hold("b", "10.0.0.35"), "a"},
		},
		"objects that nobody holds do not count": {
			{"both", func(x *Index) { x.Pools.SetPool(a(created(1))); x.Pools.SetPool(b(created(9))) }, "a"},
			{"an object of the younger", func(x *Index) { x.Feed.Watched(available("10.0.0.25", "b", 1)) }, "a"},
			{"which is reserved", func(x *Index) { x.Feed.Watched(reserved("10.0.0.25", "b", 2)) }, "b"},
			{"and free again", func(x *Index) { x.Feed.Watched(available("10.0.0.25", "b", 3)) }, "a"},
		},
		"age again when both hold leases": {
			{"both", func(x *Index) { x.Pools.SetPool(a(created(9))); x.Pools.SetPool(b(created(1))) }, "b"},
			{"the younger holds one", hold("a", "10.0.0.21"), "a"},
			{"and the older", hold("b", "10.0.0.25"), "b"},
			{"the older gives it up", give("10.0.0.25"), "a"},
		},
		"a lease that moves to the other pool": {
			{"both", func(x *Index) { x.Pools.SetPool(a(created(1))); x.Pools.SetPool(b(created(9))) }, "a"},
			{"the younger holds one", hold("b", "10.0.0.25"), "b"},
			{"it names the older now", hold("a", "10.0.0.25"), "a"},
		},
		"a pool being deleted loses, leases or not": {
			{"both", func(x *Index) { x.Pools.SetPool(a(created(1))); x.Pools.SetPool(b(created(9))) }, "a"},
			{"the older holds one", hold("a", "10.0.0.25"), "a"},
			{"and is being deleted", set(a(created(1), terminating)), "b"},
			{"so is the other", set(b(created(9), terminating)), "a"},
		},
		"a cordoned pool keeps its part": {
			{"both", func(x *Index) { x.Pools.SetPool(a(created(1))); x.Pools.SetPool(b(created(9))) }, "a"},
			{"cordoned", set(a(created(1), cordoned)), "a"},
		},
		"a pool that cannot be used does not": {
			{"both", func(x *Index) { x.Pools.SetPool(a(created(1))); x.Pools.SetPool(b(created(9))) }, "a"},
			{"not usable", set(a(created(1), problem("bad route"))), "b"},
			{"usable again", set(a(created(1))), "a"},
		},
		"leases that were there before their pools": {
			{"a lease of b", hold("b", "10.0.0.25"), ""},
			{"b", set(b(created(9))), "b"},
			{"a", set(a(created(1))), "b"},
		},
		"objects that were there before their pools": {
			{"an object of b", func(x *Index) { x.Feed.Watched(available("10.0.0.25", "b", 1)) }, ""},
			{"b", set(b(created(9))), "b"},
			{"a", set(a(created(1))), "a"},
		},
		"the shared part shrinks to nothing": {
			{"both", func(x *Index) { x.Pools.SetPool(a(created(1))); x.Pools.SetPool(b(created(9))) }, "a"},
			{"a gives it up", set(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.19"}, created(1))), "b"},
		},
		"a full list": {
			{"both, and a lease of the younger", func(x *Index) {
				x.Pools.SetPool(a(created(1)))
				x.Pools.SetPool(b(created(9)))
				x.take("b", "10.0.0.25")
			}, "b"},
			{"a list without it", func(x *Index) { x.Feed.Replace(nil, 10) }, "a"},
			{"a list with it", func(x *Index) { x.Feed.Replace([]lease.Lease{leased("10.0.0.25", "b", 11)}, 12) }, "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := New()
			for _, s := range steps {
				s.change(x)
				for _, addr := range []string{"10.0.0.20", "10.0.0.27", "10.0.0.29"} {
					if got, _ := x.Pools.PoolOf(ip(addr)); got != s.want {
						t.Fatalf("%s: %s is served by %q, want %q", s.what, addr, got, s.want)
					}
				}
				for _, p := range x.Pools.All() {
					for _, o := range x.Pools.Overlaps(p.Name) {
						if o.Served != (p.Name == s.want) || ipaddr.FormatSet(o.Shared) != "10.0.0.20-10.0.0.29" {
							t.Errorf("%s: pool %s says of %s: %v, %s", s.what, p.Name, o.Other, o.Served, ipaddr.FormatSet(o.Shared))
						}
					}
				}
				checkFreeSets(t, x)
			}
		})
	}
}

// While addresses move between two small pools in a big index, those in use stay in use.
func TestOverlapFlipKeepsAddressesInUse(t *testing.T) {
	a := pool(t, "a", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.29"}, created(1))
	b := pool(t, "b", "10.0.0.0/24", []string{"10.0.0.20-10.0.0.39"}, created(9))
	big := pool(t, "big", "10.1.0.0/23", []string{"10.1.0.0/23"})
	for name, x := range map[string]*Index{"lower first": indexOf(a, b, big), "upper first": indexOf(b, a, big)} {
		t.Run(name, func(t *testing.T) {
			for i := range uint64(100) {
				x.take("big", ipaddr.Advance(ip("10.1.1.0"), i).String())
			}
			x.Pools.SetNode("node-1", node("10.0.0.22"))
			x.MarkUnknown(ip("10.0.0.23"), 0, "key", now)
			x.take("a", "10.0.0.24")
			for range 2 {
				x.take("b", "10.0.0.25") // both hold one now: still a
				checkFreeSets(t, x)
				x.Feed.WatchedDelete(ip("10.0.0.24"), x.Feed.Seen()+1) // only b
				checkFreeSets(t, x)
				if got, _ := x.Pools.PoolOf(ip("10.0.0.24")); got != "b" {
					t.Fatalf("the shared part is served by %q, want b", got)
				}
				x.take("a", "10.0.0.24")
				x.Feed.WatchedDelete(ip("10.0.0.25"), x.Feed.Seen()+1)
				checkFreeSets(t, x)
			}
		})
	}
}

func TestFirstOverlap(t *testing.T) {
	for name, tc := range map[string]struct {
		ranges []string
		want   string
	}{
		"none":             {[]string{"10.0.0.9", "10.0.0.1-10.0.0.8", "2001:db8::1"}, ""},
		"nothing":          {nil, ""},
		"equal":            {[]string{"10.0.0.9", "10.0.0.9"}, "10.0.0.9, 10.0.0.9"},
		"touching":         {[]string{"10.0.0.1-10.0.0.5", "10.0.0.5-10.0.0.9"}, "10.0.0.1-10.0.0.5, 10.0.0.5-10.0.0.9"},
		"the lowest":       {[]string{"10.0.0.50-10.0.0.60", "10.0.0.55", "10.0.0.3", "10.0.0.1-10.0.0.5"}, "10.0.0.1-10.0.0.5, 10.0.0.3"},
		"far apart in one": {[]string{"10.0.0.1-10.0.0.99", "10.0.0.98-10.0.0.120"}, "10.0.0.1-10.0.0.99, 10.0.0.98-10.0.0.120"},
		"same start":       {[]string{"10.0.0.1-10.0.0.9", "10.0.0.1-10.0.0.3"}, "10.0.0.1-10.0.0.3, 10.0.0.1-10.0.0.9"},
	} {
		t.Run(name, func(t *testing.T) {
			var ranges []netipx.IPRange
			for _, r := range tc.ranges {
				ranges = append(ranges, mustRange(t, r))
			}
			got := ""
			if a, b, found := ipaddr.FirstOverlap(ranges); found {
				got = ipaddr.FormatRange(a) + ", " + ipaddr.FormatRange(b)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("overlap (-want +got):\n%s", diff)
			}
		})
	}
}

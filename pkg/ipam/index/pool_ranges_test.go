package index

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Each address of a pool is in one place, and the free ones of a /64 are not enumerated.
func TestRanges(t *testing.T) {
	for name, tc := range map[string]struct {
		pools []ipam.Pool
		fill  func(*Index)
		want  map[string]string
	}{
		"empty": {
			pools: []ipam.Pool{pool(t, "a", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.19"})},
			want:  map[string]string{"free": "10.0.0.10-10.0.0.19"},
		},
		"no pool": {want: map[string]string{}},
		"each state": {
			pools: []ipam.Pool{pool(t, "a", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.19"}, coolFor(time.Hour))},
			fill: func(x *Index) {
				x.Feed.Watched(leased("10.0.0.10", "a", 1))
				x.Feed.Watched(leased("10.0.0.11", "a", 2))
				x.Feed.Watched(reserved("10.0.0.15", "a", 3))
				x.Feed.Watched(gaveUp("10.0.0.17", "a", 4, 0))
				x.Pools.SetNode("n", node("10.0.0.19"))
				x.Feed.Watched(available("10.0.0.18", "a", 5))
			},
			want: map[string]string{
				"active": "10.0.0.10-10.0.0.11", "reserved": "10.0.0.15", "cooling": "10.0.0.17", "others": "10.0.0.19",
				"free": "10.0.0.12-10.0.0.14, 10.0.0.16, 10.0.0.18",
			},
		},
		"leases of another pool, and beside the pool": {
			pools: []ipam.Pool{pool(t, "a", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.13"})},
			fill: func(x *Index) {
				x.Feed.Watched(leased("10.0.0.11", "was", 1))
				x.Feed.Watched(leased("10.0.0.99", "a", 2))
			},
			want: map[string]string{"free": "10.0.0.10, 10.0.0.12-10.0.0.13", "others": "10.0.0.11", "active": "10.0.0.99"},
		},
		"what another pool serves": {
			pools: []ipam.Pool{
				pool(t, "a", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.19"}, created(9)),
				pool(t, "b", "10.0.0.0/24", []string{"10.0.0.15-10.0.0.19"}),
			},
			want: map[string]string{"free": "10.0.0.10-10.0.0.14"},
		},
		"a /64": {
			pools: []ipam.Pool{pool(t, "a", "fd00::/64", []string{"fd00::/64"})},
			fill:  func(x *Index) { x.Feed.Watched(leased("fd00::8000:0:0:0", "a", 1)) },
			want: map[string]string{
				"active": "fd00::8000:0:0:0",
				"free":   "fd00::2-fd00::7fff:ffff:ffff:ffff, fd00::8000:0:0:1-fd00::ffff:ffff:ffff:ffff",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(tc.pools...)
			if tc.fill != nil {
				tc.fill(x)
			}
			r := x.Pools.Ranges("a", at(1))
			got := map[string]string{
				"free": ipaddr.FormatSet(r.Free), "cooling": ipaddr.FormatSet(r.Cooling), "active": ipaddr.FormatSet(r.Active),
				"reserved": ipaddr.FormatSet(r.Reserved), "others": ipaddr.FormatSet(r.Others),
			}
			for state, text := range got {
				if text == "" {
					delete(got, state)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A pool that is split has the addresses of its blocks, and a block has its own.
func TestRangesOfBlocks(t *testing.T) {
	net := pool(t, "net", "10.0.0.0/24", []string{"10.0.0.32/29"}, splitInto(30))
	x := indexOf(net, aBlock(t, net, "10.0.0.32/30", "shop"), aBlock(t, net, "10.0.0.36/30", "bank"))
	x.Feed.Watched(leased("10.0.0.33", "net-10-0-0-32-30", 1))
	x.Feed.Watched(reserved("10.0.0.37", "net-10-0-0-36-30", 2))
	x.Feed.Watched(leased("10.0.0.38", "net", 3))
	for name, want := range map[string][3]string{
		"net":              {"10.0.0.33, 10.0.0.38", "10.0.0.32, 10.0.0.34-10.0.0.36, 10.0.0.39", "10.0.0.37"},
		"net-10-0-0-32-30": {"10.0.0.33", "10.0.0.32, 10.0.0.34-10.0.0.35", ""},
		"net-10-0-0-36-30": {"", "10.0.0.36, 10.0.0.39", "10.0.0.37"},
	} {
		r := x.Pools.Ranges(name, at(1))
		got := [3]string{ipaddr.FormatSet(r.Active), ipaddr.FormatSet(r.Free), ipaddr.FormatSet(r.Reserved)}
		c := x.Pools.Counts(name, at(1))
		if got != want || ipaddr.SizeOfSet(r.Free) != c.Free || ipaddr.SizeOfSet(r.Others) != c.Capacity-c.Free-uint64(c.Active+c.Reserved) {
			t.Errorf("%s: %q, others %q, counts %+v; want %q", name, got, ipaddr.FormatSet(r.Others), c, want)
		}
	}
}

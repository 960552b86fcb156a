package index

import (
	"slices"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// TestIdleBlocks: a block is idle when nobody has an address of it and none rests; it says whose it is and which others
// stay.
func TestIdleBlocks(t *testing.T) {
	net := pool(t, "net", "10.0.0.0/24", []string{"10.0.0.0/24"}, splitInto(27), func(p *ipam.Pool) { p.Cooldown = time.Hour })
	a, b := aBlock(t, net, "10.0.0.32/27", "shop"), aBlock(t, net, "10.0.0.64/27", "shop")
	for name, tc := range map[string]struct {
		leases []lease.Lease
		more   []ipam.Pool
		after  time.Duration
		want   []string
	}{
		"both":                 {nil, nil, 0, []string{a.Name, b.Name}},
		"one is used":          {[]lease.Lease{leased("10.0.0.40", a.Name, 1)}, nil, 0, []string{b.Name}},
		"one is reserved":      {[]lease.Lease{reserved("10.0.0.40", a.Name, 1)}, nil, 0, []string{b.Name}},
		"a lease of before":    {[]lease.Lease{leased("10.0.0.40", "net", 1)}, nil, 0, []string{b.Name}},
		"one is being deleted": {nil, []ipam.Pool{aBlock(t, net, "10.0.0.32/27", "shop", terminating)}, 0, []string{b.Name}},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(append([]ipam.Pool{net, a, b}, tc.more...)...)
			for i, l := range tc.leases {
				l.Version = uint64(i + 1)
				x.Feed.Watched(l)
			}
			var got []string
			for _, i := range x.Pools.IdleBlocks(now.Add(tc.after)) {
				got = append(got, i.Block)
				if i.Namespace != "shop" || !i.Abandoned || slices.Contains(i.Others, i.Block) {
					t.Errorf("%+v", i)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("idle are %v, want %v", got, tc.want)
			}
		})
	}
	shrunk := pool(t, "net", "10.0.0.0/24", []string{"10.0.0.64-10.0.0.255"}, splitInto(27))
	group := pool(t, "other", "10.0.0.0/24", []string{"10.0.0.32/27"}, namespaces("shop"))
	group.Parent = "net"
	for name, tc := range map[string]struct {
		change func(*Index)
		want   []string
	}{
		"nothing is in it":         {func(*Index) {}, []string{a.Name, b.Name}},
		"one is used":              {func(x *Index) { x.take(a.Name, "10.0.0.40") }, []string{b.Name}},
		"one is reserved":          {func(x *Index) { x.Feed.Watched(reserved("10.0.0.40", a.Name, 1)) }, []string{b.Name}},
		"it goes already":          {func(x *Index) { x.Pools.EndPool(a.Name, a.Created) }, []string{b.Name}},
		"its leases are not known": {func(x *Index) { x.Pools.SetRebuilding(a.Name, "until then") }, []string{b.Name}},
	} {
		x := indexOf(net, a, b, group, shrunk)
		tc.change(x)
		var got []string
		for _, i := range x.Pools.IdleBlocks(now) {
			if got = append(got, i.Block); i.Namespace != "shop" || !i.Abandoned || i.Parent != "net" || !i.Created.Equal(now) {
				t.Errorf("%+v", i)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("the parent has shrunk, %s: idle are %v, want %v", name, got, tc.want)
		}
	}
	x := indexOf(net, a, shrunk)
	x.Pools.SetNamespace("shop", nil)
	if i := x.Pools.IdleBlocks(now); len(i) != 1 || i[0].Abandoned || len(i[0].Others) != 0 {
		t.Errorf("the last block of a namespace that lives, of a parent that has shrunk: %+v", i)
	}
	for _, lost := range []string{"net", a.Name} {
		x := indexOf(net, a)
		x.Pools.SetRebuilding(lost, "until shop/web-0 tells")
		if i := x.Pools.IdleBlocks(now); len(i) != 0 {
			t.Errorf("idle while the leases of %s are not known: %+v", lost, i)
		}
	}
	x = indexOf(net, a)
	x.Pools.SetNamespace("shop", nil)
	if i := x.Pools.IdleBlocks(now); len(i) != 1 || i[0].Abandoned || len(i[0].Others) != 0 {
		t.Errorf("the last block of a namespace that lives: %+v", i)
	}
	if _, refusal := x.Pick(want(), now); refusal != nil {
		t.Fatal(refusal)
	}
	if i := x.Pools.IdleBlocks(now); len(i) != 0 {
		t.Errorf("idle while an address is being given: %+v", i)
	}
}

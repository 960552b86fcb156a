package index

import (
	"net/netip"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// TestOwnByHost: a block that a pool gave by itself is the namespace's own on the hosts of that pool alone; what
// somebody decided, a binding or a block given by hand or in an order, is on every host.
func TestOwnByHost(t *testing.T) {
	auto := pool(t, "auto", "10.0.0.0/24", []string{"10.0.0.0/24"}, splitInto(30))
	byHand := pool(t, "auto", "10.0.0.0/24", []string{"10.0.0.0/24"}, splitInto(30), byBindAlone)
	named := pool(t, "auto", "10.0.0.0/24", []string{"10.0.0.0/24"}, splitInto(30), notDefault, network("store"))
	open := pool(t, "open", "10.0.1.0/24", []string{"10.0.1.9"}, hosts(host1, host2))
	bound := pool(t, "bound", "10.0.2.0/24", []string{"10.0.2.9"}, namespaces("shop"))
	const cut = "NamespaceNotServed: none of the pools of host 192.168.0.2 serves namespace shop: open; it draws only from its own pools:" +
		" auto"
	leaving := pool(t, "auto", "10.0.0.0/24", []string{"10.0.0.0/24"}, splitInto(30), terminating)
	mine := aBlock(t, auto, "10.0.0.32/30", "shop")
	inOrder := aBlock(t, auto, "10.0.0.32/30", "shop", priority(1000))
	const first = "auto-10-0-0-32-30 10.0.0.32"
	hint := func(pool string) string {
		return "; hint: see why: bcsnetctl explain namespace shop; to let the host draw from its own pools: " +
			"bcsnetctl pool add-host " + pool + " 192.168.0.2"
	}
	ahead := func(pools ...string) func(w *ipam.PickRequest) {
		return func(w *ipam.PickRequest) { w.Ahead, w.Host, w.Claim, w.Pools = true, netip.Addr{}, "shop/c", pools }
	}
	const cutAhead = "NamespaceNotServed: pool open does not serve namespace shop; hint: see why: bcsnetctl explain namespace " +
		"shop; to see the effect of binding the pool to it: bcsnetctl pool bind open --namespace shop --dry-run=server"
	covered := pool(t, "open", "10.0.1.0/24", []string{"10.0.1.9"}) // its hosts are those of auto
	for name, tc := range map[string]pickCase{
		"a block by itself, on a host of its pool":   {pools: []ipam.Pool{auto, mine, open}, want: want(), picks: []string{first}},
		"a block by itself, on another host":         {pools: []ipam.Pool{auto, mine, open}, want: want(onHost(host2)), picks: []string{"open 10.0.1.9"}},
		"a block by itself, another host, by name":   {pools: []ipam.Pool{auto, mine, open}, want: want(onHost(host2), func(w *ipam.PickRequest) { w.Pools = []string{"open"} }), picks: []string{"open 10.0.1.9"}},
		"a block by itself, another host, by addr":   {pools: []ipam.Pool{auto, mine, open}, want: want(onHost(host2), asking("10.0.1.9")), picks: []string{"open 10.0.1.9"}},
		"the pool is cordoned, on a host of it":      {pools: []ipam.Pool{pool(t, "auto", "10.0.0.0/24", []string{"10.0.0.0/24"}, splitInto(30), cordoned), mine, open}, want: want(), text: "PoolCordoned: no available IP for pod shop/a: pool auto is cordoned; pool auto-10-0-0-32-30 is a child of pool auto, which is cordoned; namespace shop draws only from its own pools; hint: let it allocate addresses again: bcsnetctl pool uncordon auto"},
		"a block by itself, ahead of its pods":       {pools: []ipam.Pool{auto, mine, open}, want: want(ahead()), picks: []string{first}},
		"a block by itself, ahead, by name":          {pools: []ipam.Pool{auto, mine, open}, want: want(ahead("open")), picks: []string{"open 10.0.1.9"}},
		"no block yet, ahead, by name":               {pools: []ipam.Pool{auto, open}, want: want(ahead("open")), picks: []string{"open 10.0.1.9"}},
		"a block by itself, ahead, all its hosts":    {pools: []ipam.Pool{auto, mine, covered}, want: want(ahead("open")), text: cutAhead},
		"a block by hand, ahead, by name":            {pools: []ipam.Pool{byHand, mine, open}, want: want(ahead("open")), text: cutAhead},
		"the pool is being deleted, no block":        {pools: []ipam.Pool{auto, leaving, open}, want: want(), picks: []string{"open 10.0.1.9"}},
		"the pool is being deleted, with a block":    {pools: []ipam.Pool{auto, mine, leaving, open}, want: want(), text: "PoolCordoned: no available IP for pod shop/a: pool auto is being deleted; pool auto-10-0-0-32-30 is being deleted; namespace shop draws only from its own pools; hint: see: bcsnetctl pool describe auto"},
		"a block by hand, on another host":           {pools: []ipam.Pool{byHand, mine, open}, want: want(onHost(host2)), text: cut + hint("auto")},
		"a block in an order, on another host":       {pools: []ipam.Pool{auto, inOrder, open}, want: want(onHost(host2)), text: cut + hint("auto")},
		"bound, on another host":                     {pools: []ipam.Pool{bound, open}, want: want(onHost(host2)), text: "NamespaceNotServed: none of the pools of host 192.168.0.2 serves namespace shop: open; it draws only from its own pools: bound" + hint("bound")},
		"of a pool that is not default, not named":   {pools: []ipam.Pool{named, mine, open}, want: want(), picks: []string{"open 10.0.1.9"}},
		"of a pool that is not default, by network":  {pools: []ipam.Pool{named, mine, open}, want: want(ofNetwork("store")), picks: []string{first}},
		"of a pool that is not default, by its name": {pools: []ipam.Pool{named, mine, open}, want: want(func(w *ipam.PickRequest) { w.Pools = []string{"auto"} }), picks: []string{first}},
	} {
		t.Run(name, tc.check)
	}
}

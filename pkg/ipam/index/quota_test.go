package index

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

func perNamespace(n int) option { return func(p *ipam.Pool) { p.MaxPerNamespace = n } }

// quota gives a namespace a quota of its own.
func quota(namespace string, n int) option {
	return func(p *ipam.Pool) {
		if p.Quotas == nil {
			p.Quotas = map[string]int{}
		}
		p.Quotas[namespace] = n
	}
}

func ofClaim(claim string, l lease.Lease) lease.Lease { l.Claim, l.Fixed = claim, true; return l }

func inSpace(namespace string, l lease.Lease) lease.Lease { l.Namespace = namespace; return l }

// TestQuota: a namespace gets no more addresses of a pool than the pool says, however they are asked for.
func TestQuota(t *testing.T) {
	a := func(options ...option) ipam.Pool {
		return pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.12"}, options...)
	}
	b := pool(t, "b", "10.0.1.0/24", []string{"10.0.1.9"})
	six := pool(t, "six", "2001:db8::/64", []string{"2001:db8::8"}, network("blue"), quota("shop", 0))
	of := func(claim, key string) func(*ipam.PickRequest) {
		return func(w *ipam.PickRequest) { w.Claim, w.PodPrimaryKey, w.IfName = claim, key, lease.DefaultIfName }
	}
	sets := func(all ...*netipx.IPSet) func(*ipam.PickRequest) { return func(w *ipam.PickRequest) { w.Sets = all } }
	eight, nine := leased("10.0.0.8", "a", 1), leased("10.0.0.9", "a", 1)
	const hint = "; hint: release what it keeps and does not need: bcsnetctl claim list -n shop; or raise its quota: " +
		"bcsnetctl pool set a --quota shop=N"
	const two = "QuotaExceeded: no available IP for pod shop/a: namespace shop has 2 of the 2 addresses of pool a that " +
		"it may have" + hint
	onTheWay := strings.Replace(two, "has 2 of", "has 1 (and 1 on their way) of", 1)
	elsewhere := strings.NewReplacer("namespace shop", "namespace pools", "-n shop", "-n pools", "--quota shop", "--quota pools").Replace(two)
	const pair = "QuotaExceeded: no available IP for pod shop/a: pool a (10.0.0.0/24) has 3 of 5 addresses free, 2 " +
		"active, 0 reserved"
	for name, tc := range map[string]pickCase{
		"one more":                    {pools: []ipam.Pool{a(perNamespace(3))}, leases: []lease.Lease{eight, nine}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10"}},
		"no bound":                    {pools: []ipam.Pool{a()}, leases: []lease.Lease{eight, nine}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10"}},
		"a quota of its own":          {pools: []ipam.Pool{a(perNamespace(2), quota("shop", 3))}, leases: []lease.Lease{eight, nine}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10"}},
		"another namespace's quota":   {pools: []ipam.Pool{a(quota("bank", 0))}, leases: []lease.Lease{eight}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10"}},
		"another namespace's are not": {pools: []ipam.Pool{a(perNamespace(2))}, leases: []lease.Lease{eight, inSpace("bank", nine)}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10"}},
		"another pool's are not":      {pools: []ipam.Pool{a(perNamespace(1)), b}, leases: []lease.Lease{leased("10.0.1.9", "b", 1)}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10"}},
		"set aside by hand is not":    {pools: []ipam.Pool{a(perNamespace(1))}, leases: []lease.Lease{reserved("10.0.0.8", "a", 1)}, want: want(asking("10.0.0.10")), picks: []string{"a 10.0.0.10"}},
		"the next pool":               {pools: []ipam.Pool{a(perNamespace(2)), b}, leases: []lease.Lease{eight, nine}, want: want(), picks: []string{"b 10.0.1.9"}},
		"by hand":                     {pools: []ipam.Pool{a(perNamespace(1))}, leases: []lease.Lease{eight}, want: ipam.PickRequest{Owner: "vm", Namespace: "shop", Pools: []string{"a"}, Addrs: ips("10.0.0.10"), Key: "k", Who: "vm"}, picks: []string{"a 10.0.0.10"}},
		"what it holds":               {pools: []ipam.Pool{a(quota("shop", 0))}, leases: []lease.Lease{eight}, want: want(having(eight))},
		"its own, which is kept":      {pools: []ipam.Pool{a(quota("shop", 1))}, leases: []lease.Lease{nine, keptFor("10.0.0.8", "a", "web-0", "web-0", 1)}, want: want(of("shop/web", "web-0")), picks: []string{"a 10.0.0.8"}},
		"one that is kept for any":    {pools: []ipam.Pool{a(quota("shop", 1))}, leases: []lease.Lease{nine, keptFor("10.0.0.8", "a", "", "", 1)}, want: want(of("shop/web", "")), picks: []string{"a 10.0.0.8"}},
		"of a shared pool, kept":      {pools: []ipam.Pool{a(quota("pools", 1))}, leases: []lease.Lease{ofClaim("pools/db", reserved("10.0.0.8", "a", 1))}, want: want(of("pools/db", "")), picks: []string{"a 10.0.0.8"}},

		"full":                {pools: []ipam.Pool{a(perNamespace(2))}, leases: []lease.Lease{eight, nine}, want: want(), text: pair + ", namespace shop has 2 of the 2 that it may have" + hint},
		"none at all":         {pools: []ipam.Pool{a(quota("shop", 0))}, want: want(asking("10.0.0.10")), text: strings.Replace(two, "has 2 of the 2", "has 0 of the 0", 1)},
		"by name":             {pools: []ipam.Pool{a(perNamespace(2))}, leases: []lease.Lease{eight, nine}, want: want(asking("10.0.0.10")), text: two},
		"of a set":            {pools: []ipam.Pool{a(perNamespace(2))}, leases: []lease.Lease{eight, nine}, want: want(sets(mustSet(t, "10.0.0.10"))), text: two},
		"more than it may":    {pools: []ipam.Pool{a(perNamespace(1))}, leases: []lease.Lease{eight, nine}, want: want(asking("10.0.0.10")), text: strings.Replace(two, "2 of the 2", "2 of the 1", 1)},
		"kept ones count":     {pools: []ipam.Pool{a(perNamespace(2))}, leases: []lease.Lease{eight, keptFor("10.0.0.9", "a", "", "", 1)}, want: want(asking("10.0.0.10")), text: two},
		"two sets":            {pools: []ipam.Pool{a(perNamespace(2))}, leases: []lease.Lease{eight}, want: want(sets(mustSet(t, "10.0.0.10"), mustSet(t, "10.0.0.11"))), text: onTheWay},
		"of both, once":       {pools: []ipam.Pool{a(perNamespace(2))}, leases: []lease.Lease{ofClaim("shop/web", eight), ofClaim("shop/web", nine)}, want: want(asking("10.0.0.10"), of("shop/web", "")), text: two},
		"of a shared pool":    {pools: []ipam.Pool{a(quota("pools", 2))}, leases: []lease.Lease{ofClaim("pools/db", eight), ofClaim("pools/other", reserved("10.0.0.9", "a", 1))}, want: want(asking("10.0.0.10"), of("pools/db", "")), text: elsewhere},
		"kept in shared pool": {pools: []ipam.Pool{a(quota("shop", 2))}, leases: []lease.Lease{eight, nine, ofClaim("pools/db", reserved("10.0.0.11", "a", 1))}, want: want(sets(mustSet(t, "10.0.0.11")), of("pools/db", "")), text: two},
		"on its way to another": {
			pools: []ipam.Pool{a(perNamespace(2))}, leases: []lease.Lease{eight}, want: want(asking("10.0.0.10")),
			before: func(x *Index) {
				_, _ = x.Pick(want(asking("10.0.0.9"), func(w *ipam.PickRequest) { w.Key = "other" }), now)
			},
			text: two,
		},
		"lost": {
			pools: []ipam.Pool{a(perNamespace(2))}, leases: []lease.Lease{eight, nine}, want: want(asking("10.0.0.10")),
			before: func(x *Index) { x.Feed.WatchedDelete(nine.Addr, 99) }, text: two,
		},
		"all that is free is kept in a shared pool": {
			pools: []ipam.Pool{a(quota("shop", 2))}, leases: []lease.Lease{
				eight, nine, ofClaim("pools/db", reserved("10.0.0.10", "a", 1)), reserved("10.0.0.11", "a", 1),
				reserved("10.0.0.12", "a", 1),
			},
			want: want(of("pools/db", "")),
			text: "QuotaExceeded: no available IP for pod shop/a: pool a (10.0.0.0/24) has 0 of 5 addresses free, 2 active, 3 " +
				"reserved, namespace shop has 2 of the 2 that it may have" + hint,
		},
		"ahead of all pods": {
			pools:  []ipam.Pool{a(quota("shop", 1), quota("pools", 2), hosts(host1))},
			leases: []lease.Lease{eight, ofClaim("pools/db", nine)},
			want: ipam.PickRequest{
				Ahead: true, Namespace: "shop", Claim: "pools/db", Key: "k", Who: "claim pools/db", Pools: []string{"a"},
				Addrs: ips("10.0.0.10"),
			}, picks: []string{"a 10.0.0.10"},
		},
		"ahead of all pods, no more": {
			pools: []ipam.Pool{a(quota("pools", 1), hosts(host1))}, leases: []lease.Lease{eight, ofClaim("pools/db", nine)},
			want: ipam.PickRequest{Ahead: true, Namespace: "shop", Claim: "pools/db", Key: "k", Who: "claim pools/db"},
			text: strings.NewReplacer("pod shop/a", "claim pools/db", "-n shop", "-n pools", "--quota shop", "--quota pools").
				Replace(pair + ", namespace pools has 1 of the 1 that it may have" + hint),
		},
		"one family is full": {
			pools: []ipam.Pool{a(network("blue")), six}, want: want(),
			text: strings.Replace(
				"QuotaExceeded: no available IP for pod shop/a: pool a (10.0.0.0/24) has 5 of 5 addresses free, 0 active, 0 reserved; pool six (2001:db8::/64) has 1 of 1 addresses free, 0 active, 0 reserved, namespace shop has 0 of the 0 that it may have"+hint, "set a", "set six", 1),
		},
	} {
		t.Run(name, tc.check)
	}
}

// TestQuotaLowered: what a namespace has stays its own when its quota falls; it shows as too many.
func TestQuotaLowered(t *testing.T) {
	p := pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.12"}, perNamespace(5), quota("idle", 3))
	x := indexOf(p)
	x.take("a", "10.0.0.8", "10.0.0.9")
	uses := func(want ...ipam.NamespaceUse) {
		t.Helper()
		if diff := cmp.Diff(want, x.Pools.QuotaUse("a"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	uses(ipam.NamespaceUse{Namespace: "idle", Has: 0, Quota: 3}, ipam.NamespaceUse{Namespace: "shop", Has: 2, Quota: 5})
	p.MaxPerNamespace = 1
	x.Pools.SetPool(p)
	uses(ipam.NamespaceUse{Namespace: "idle", Has: 0, Quota: 3}, ipam.NamespaceUse{Namespace: "shop", Has: 2, Quota: 1})
	if l, _ := x.Leases.Get(ip("10.0.0.9")); l.State != lease.Active {
		t.Errorf("%+v", l)
	}
	p.MaxPerNamespace, p.Quotas = 0, nil
	x.Pools.SetPool(p)
	uses()
}

// TestSucceedQuota: the next pod of a key takes over the address of the earlier one, unless it counts for another
// namespace that has no more.
func TestSucceedQuota(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.12"}, quota("shop", 1), quota("bank", 0),
		quota("pools", 1)))
	l := leased("10.0.0.8", "a", 1)
	l.Retention = lease.Retention{Claim: "pools/db", PodPrimaryKey: "db-0", Fixed: true}
	x.Feed.Watched(l)
	from := func(namespace string) string {
		_, _, refusal := x.TakeOverParams(want(inNamespace(namespace),
			func(w *ipam.PickRequest) { w.Claim, w.PodPrimaryKey = "pools/db", "db-0" }), l)
		return refused(refusal)
	}
	if got := from("shop"); got != "" {
		t.Errorf("of the same namespace: %s", got)
	}
	if got := from("bank"); !strings.HasPrefix(got,
		"QuotaExceeded: no available IP for pod shop/a: namespace bank has 0 of the 0 addresses of pool a") {
		t.Errorf("of another: %s", got)
	}
}

// TestRoomForQuota: a pool has room for no more pods of a namespace than its quota leaves.
func TestRoomForQuota(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/24", []string{"10.0.0.8-10.0.0.12"}, quota("shop", 3), quota("pools", 1)))
	x.take("a", "10.0.0.8")
	for name, tc := range map[string]struct {
		want ipam.PickRequest
		room uint64
	}{
		"bounded":           {want(), 2},
		"another namespace": {want(inNamespace("bank")), 4},
		"of a shared pool":  {want(func(w *ipam.PickRequest) { w.Claim = "pools/db" }), 1},
		"others on the way": {want(func(w *ipam.PickRequest) {
			w.ExpectedIn = func(string, string) []netip.Addr { return ips("10.0.0.8", "10.0.0.9") }
		}), 1},
	} {
		if got := x.RoomFor(tc.want, now); got != tc.room {
			t.Errorf("%s: %d, want %d", name, got, tc.room)
		}
	}
}

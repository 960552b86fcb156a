package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

func families(policy ipam.FamilyPolicy, order ...ipaddr.Family) func(*ipam.PickRequest) {
	return func(w *ipam.PickRequest) { w.Families = ipam.Families{Policy: policy, Order: order} }
}

// among restricts a request to one of each of some addresses.
func among(addrs ...string) func(*ipam.PickRequest) {
	return func(w *ipam.PickRequest) {
		for _, a := range ips(addrs...) {
			w.Sets = append(w.Sets, ipaddr.SetOfAddrs(a))
		}
	}
}

// What a request takes by its families, of pools as they are.
func TestFamilies(t *testing.T) {
	const v4, v6 = ipaddr.IPv4, ipaddr.IPv6
	pool4 := func(name, addr string, options ...option) ipam.Pool {
		return pool(t, name, "10.0.0.0/24", []string{addr}, options...)
	}
	pool6 := func(name, addr string, options ...option) ipam.Pool {
		return pool(t, name, "2001:db8::/64", []string{addr}, options...)
	}
	alone4, alone6 := pool4("a4", "10.0.0.9"), pool6("b6", "2001:db8::9")
	blue := []ipam.Pool{pool4("blue4", "10.0.0.19", network("blue")), pool6("blue6", "2001:db8::19", network("blue"))}
	full4 := []ipam.Pool{pool4("blue4", "10.0.0.19", network("blue"), func(p *ipam.Pool) { p.Cordoned = true }), blue[1]}
	full6 := []ipam.Pool{blue[0], pool6("blue6", "2001:db8::19", network("blue"), func(p *ipam.Pool) { p.Cordoned = true })}
	both := []string{"blue4 10.0.0.19", "blue6 2001:db8::19"}
	const (
		none6 = "FamilyNotServed: pod shop/a takes an address of IPv6, which none of the pools that serve it has: a4 (IPv4); " +
			"hint: ask for another of ipFamilies, or create a pool of that family: bcsnetctl pool create --help"
		apart = "FamilyNotServed: pod shop/a requires IPv4 and IPv6, and no network of the pools that serve it has both: " +
			"a4 (IPv4, of no network), b6 (IPv6, of no network); hint: make the pools of both families part of one network, " +
			"spec.network; see: bcsnetctl pool list -o wide"
		oneNetwork = "FamilyNotServed: pod shop/a requires IPv4 and IPv6, and no network of the pools that serve it has both: " +
			"blue4 (IPv4, network blue); hint: make the pools of both families part of one network, spec.network; see: " +
			"bcsnetctl pool list -o wide"
		cordoned6 = "PoolCordoned: no available IP for pod shop/a: pool blue6 is cordoned; hint: let it allocate addresses " +
			"again: bcsnetctl pool uncordon blue6"
		oneCordoned = "PoolCordoned: no available IP for pod shop/a: pool blue4 (10.0.0.0/24) has 1 of 1 addresses free, 0 " +
			"active, 0 reserved; pool blue6 is cordoned; hint: let it allocate addresses again: bcsnetctl pool uncordon blue6"
	)
	held := func(addr, pool string, size int) func(*ipam.PickRequest) {
		return func(w *ipam.PickRequest) {
			w.Have = append(w.Have, lease.Lease{Addr: ip(addr), State: lease.Active, Params: lease.Params{Pool: pool}, Holder: lease.Holder{SetSize: size}})
		}
	}
	named := func(name string) func(*ipam.PickRequest) {
		return func(w *ipam.PickRequest) { w.Pools = []string{name} }
	}
	for name, tc := range map[string]struct {
		pools   []ipam.Pool
		w       ipam.PickRequest
		want    []string
		refusal string
	}{
		"nothing said":                             {pools: blue, w: want(), want: both},
		"nothing said, one is full":                {pools: full6, w: want(), refusal: oneCordoned},
		"single":                                   {pools: blue, w: want(families(ipam.SingleStack)), want: both[:1]},
		"single, by the priority of the pools":     {pools: []ipam.Pool{blue[0], pool6("blue6", "2001:db8::19", network("blue"), priority(1))}, w: want(families(ipam.SingleStack)), want: both[1:]},
		"single, the first pool is full":           {pools: full4, w: want(families(ipam.SingleStack)), want: both[1:]},
		"single of IPv6":                           {pools: blue, w: want(families(ipam.SingleStack, v6)), want: both[1:]},
		"single, of the first of two":              {pools: blue, w: want(families(ipam.SingleStack, v6, v4)), want: both[1:]},
		"one family is single":                     {pools: blue, w: want(families("", v6)), want: both[1:]},
		"single of IPv6, of another pool":          {pools: []ipam.Pool{alone4, alone6}, w: want(families(ipam.SingleStack, v6)), want: []string{"b6 2001:db8::9"}},
		"single of IPv6, there is none":            {pools: []ipam.Pool{alone4}, w: want(families(ipam.SingleStack, v6)), refusal: none6},
		"single of IPv6, which is full":            {pools: full6, w: want(families(ipam.SingleStack, v6)), refusal: cordoned6},
		"single of IPv6, the pool named has none":  {pools: []ipam.Pool{alone4, alone6}, w: want(families(ipam.SingleStack, v6), named("a4")), refusal: none6},
		"single, an address is asked for":          {pools: blue, w: want(families(ipam.SingleStack), asking("2001:db8::19")), want: both[1:]},
		"require":                                  {pools: append([]ipam.Pool{alone4, alone6}, blue...), w: want(families(ipam.RequireDualStack)), want: both},
		"two families are required":                {pools: append([]ipam.Pool{alone4, alone6}, blue...), w: want(families("", v6, v4)), want: both},
		"one family is not all that is required":   {pools: blue, w: want(families(ipam.RequireDualStack, v6)), want: both},
		"require, of no network":                   {pools: []ipam.Pool{alone4, alone6}, w: want(families(ipam.RequireDualStack)), refusal: apart},
		"require, of a network of one family":      {pools: blue[:1], w: want(families(ipam.RequireDualStack)), refusal: oneNetwork},
		"require, one is full":                     {pools: append([]ipam.Pool{alone6}, full6...), w: want(families(ipam.RequireDualStack)), refusal: oneCordoned},
		"require, an address is asked for":         {pools: blue, w: want(families(ipam.RequireDualStack), asking("10.0.0.19")), want: both},
		"require beside one that has no other":     {pools: []ipam.Pool{alone4}, w: want(families(ipam.RequireDualStack), asking("10.0.0.9")), refusal: "FamilyNotServed: pod shop/a requires IPv4 and IPv6, and no network of the pools that serve it has both: a4 (IPv4, of no network); hint: make the pools of both families part of one network, spec.network; see: bcsnetctl pool list -o wide"},
		"prefer":                                   {pools: append([]ipam.Pool{alone4, alone6}, blue...), w: want(families(ipam.PreferDualStack)), want: both},
		"prefer, of a network of one family":       {pools: blue[:1], w: want(families(ipam.PreferDualStack)), want: both[:1]},
		"prefer, of no network":                    {pools: []ipam.Pool{alone4, alone6}, w: want(families(ipam.PreferDualStack)), want: []string{"a4 10.0.0.9"}},
		"prefer, one is full":                      {pools: full6, w: want(families(ipam.PreferDualStack)), want: both[:1]},
		"prefer, the other is full":                {pools: full4, w: want(families(ipam.PreferDualStack)), want: both[1:]},
		"prefer, IPv6 first":                       {pools: []ipam.Pool{alone4, alone6}, w: want(families(ipam.PreferDualStack, v6, v4)), want: []string{"b6 2001:db8::9"}},
		"prefer, IPv6 first, which is full":        {pools: full6, w: want(families(ipam.PreferDualStack, v6)), want: both[:1]},
		"prefer, there is nothing":                 {pools: full6[1:], w: want(families(ipam.PreferDualStack)), refusal: cordoned6},
		"prefer, no pool":                          {w: want(families(ipam.PreferDualStack)), refusal: "HostNotInPool: host 192.168.0.1 does not exist in pools; hint: add it with: bcsnetctl pool add-host POOL 192.168.0.1"},
		"prefer completes what was begun":          {pools: blue, w: want(families(ipam.PreferDualStack), held("10.0.0.19", "blue4", 2)), want: both[1:]},
		"prefer does not answer a part":            {pools: full6, w: want(families(ipam.PreferDualStack), held("10.0.0.19", "blue4", 2)), refusal: oneCordoned},
		"single completes what was begun as a set": {pools: blue, w: want(families(ipam.SingleStack), held("10.0.0.19", "blue4", 2)), want: both[1:]},
		"require beside what is held":              {pools: blue, w: want(families(ipam.RequireDualStack), held("10.0.0.19", "blue4", 2)), want: both[1:]},
		"require beside what is held alone":        {pools: blue[:1], w: want(families(ipam.RequireDualStack), held("10.0.0.19", "blue4", 2)), refusal: oneNetwork},
		"single of sets of both":                   {pools: blue, w: want(families(ipam.SingleStack, v6), among("10.0.0.19", "2001:db8::19")), want: both[1:]},
		"single of the first of sets":              {pools: blue, w: want(families(ipam.SingleStack), among("10.0.0.19", "2001:db8::19")), want: both[:1]},
		"require of sets of one":                   {pools: blue, w: want(families(ipam.RequireDualStack), among("10.0.0.19")), refusal: "ClaimConflict: pod shop/a takes an address of IPv6, and its annotations or its claim name no address of that family; hint: name addresses of that family, too, or ask for another ipFamilyPolicy"},
		"prefer of sets of one":                    {pools: blue, w: want(families(ipam.PreferDualStack), among("10.0.0.19")), want: both[:1]},
		"prefer of sets, of which one is full":     {pools: full6, w: want(families(ipam.PreferDualStack), among("10.0.0.19", "2001:db8::19")), want: both[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(tc.pools...)
			picks, refusal := x.Propose(tc.w, now)
			if diff := cmp.Diff(tc.want, picked(picks)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.refusal, refused(refusal)); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			if room := x.RoomFor(tc.w, now); len(tc.w.Have) == 0 && (room > 0) != (tc.refusal == "") && tc.w.Sets == nil && tc.w.Families.Policy != ipam.PreferDualStack && tc.w.Families.Policy != "" && tc.w.Addrs == nil {
				t.Errorf("room for %d pods", room)
			}
		})
	}
}

// What a claim keeps for the pod comes first, of the families that the pod takes.
func TestFamiliesOfWhatIsKept(t *testing.T) {
	x := indexOf(
		pool(t, "blue4", "10.0.0.0/24", []string{"10.0.0.10-10.0.0.19"}, network("blue")),
		pool(t, "blue6", "2001:db8::/64", []string{"2001:db8::10-2001:db8::19"}, network("blue")))
	for i, a := range []string{"10.0.0.15", "2001:db8::15"} {
		l := lease.Lease{
			Addr: ip(a), Version: uint64(i + 1), State: lease.Reserved, Retention: lease.Retention{Claim: "shop/sts-db", PodPrimaryKey: "db-0", Fixed: true},
			Params: lease.Params{Pool: []string{"blue4", "blue6"}[i]},
		}
		l.IfName = "eth0"
		x.Feed.Watched(l)
	}
	of := func(change func(*ipam.PickRequest)) []string {
		t.Helper()
		w := want(change)
		w.Claim, w.PodPrimaryKey, w.IfName = "shop/sts-db", "db-0", "eth0"
		picks, refusal := x.Propose(w, now)
		if refusal != nil {
			t.Error(refusal)
		}
		return picked(picks)
	}
	all := []string{"blue4 10.0.0.15", "blue6 2001:db8::15"}
	for name, tc := range map[string]struct {
		said func(*ipam.PickRequest)
		want []string
	}{
		"nothing":     {families(""), all},
		"prefer":      {families(ipam.PreferDualStack), all},
		"require":     {families(ipam.RequireDualStack), all},
		"single":      {families(ipam.SingleStack), all[:1]},
		"single IPv6": {families(ipam.SingleStack, ipaddr.IPv6), all[1:]},
	} {
		if diff := cmp.Diff(tc.want, of(tc.said)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseFamilies(t *testing.T) {
	for name, tc := range map[string]struct {
		policy string
		names  []string
		want   string
		err    string
	}{
		"nothing":      {},
		"all":          {policy: "PreferDualStack", names: []string{"IPv6", "IPv4"}, want: "ipFamilyPolicy PreferDualStack, ipFamilies IPv6, IPv4"},
		"no policy":    {policy: "DualStack", err: "there is no such policy; the policies are SingleStack, PreferDualStack and RequireDualStack"},
		"other case":   {policy: "singleStack", err: "there is no such policy; the policies are SingleStack, PreferDualStack and RequireDualStack"},
		"no family":    {names: []string{"IPv4", "ipv6"}, err: `"ipv6" is not a family: it is IPv4 or IPv6`},
		"empty family": {names: []string{""}, err: `"" is not a family: it is IPv4 or IPv6`},
		"twice":        {names: []string{"IPv6", "IPv6"}, err: "it names IPv6 twice"},
		"three":        {names: []string{"IPv4", "IPv6", "IPv4"}, err: "it names 3 families: there are IPv4 and IPv6"},
	} {
		policy, err := ipam.ParseFamilyPolicy(tc.policy)
		order, err2 := ipam.ParseFamilies(tc.names)
		if err == nil {
			err = err2
		}
		f := ipam.Families{Policy: policy, Order: order}
		if message(err) != tc.err || err == nil && f.String() != tc.want {
			t.Errorf("%s: %s, %v", name, f, err)
		}
	}
}

// Two sides say what they say; what neither says is not said.
func TestFamiliesWith(t *testing.T) {
	v6, v64 := []ipaddr.Family{ipaddr.IPv6}, []ipaddr.Family{ipaddr.IPv6, ipaddr.IPv4}
	for name, tc := range map[string]struct {
		a, b ipam.Families
		want string
		ok   bool
	}{
		"nothing":        {ok: true},
		"one side":       {b: ipam.Families{Policy: ipam.SingleStack, Order: v6}, want: "ipFamilyPolicy SingleStack, ipFamilies IPv6", ok: true},
		"each a part":    {a: ipam.Families{Order: v6}, b: ipam.Families{Policy: ipam.PreferDualStack}, want: "ipFamilyPolicy PreferDualStack, ipFamilies IPv6", ok: true},
		"the same":       {a: ipam.Families{Policy: ipam.SingleStack, Order: v6}, b: ipam.Families{Policy: ipam.SingleStack, Order: v6}, want: "ipFamilyPolicy SingleStack, ipFamilies IPv6", ok: true},
		"other policies": {a: ipam.Families{Policy: ipam.SingleStack}, b: ipam.Families{Policy: ipam.PreferDualStack}},
		"other families": {a: ipam.Families{Order: v6}, b: ipam.Families{Order: v64}},
	} {
		if got, ok := tc.a.With(tc.b); ok != tc.ok || ok && got.String() != tc.want {
			t.Errorf("%s: %s, %t", name, got, ok)
		}
	}
}

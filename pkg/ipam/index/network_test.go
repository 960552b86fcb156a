package index

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

func TestPickFromNetworks(t *testing.T) {
	// net makes the two pools of a network, NAME4 and NAME6, of one address each.
	net := func(name, third string, options ...option) []ipam.Pool {
		options = append([]option{network(name)}, options...)
		return []ipam.Pool{
			pool(t, name+"4", "10.0."+third+".0/24", []string{"10.0." + third + ".9"}, options...),
			pool(t, name+"6", "2001:db8:"+third+"::/64", []string{"2001:db8:" + third + "::9"}, options...),
		}
	}
	all := func(lists ...[]ipam.Pool) (out []ipam.Pool) {
		for _, l := range lists {
			out = append(out, l...)
		}
		return out
	}
	v4 := pool(t, "plain4", "10.9.0.0/24", []string{"10.9.0.9"})
	v6 := pool(t, "plain6", "2001:db8:9::/64", []string{"2001:db8:9::9"})
	blue4, blue6 := leased("10.0.1.9", "blue4", 1), leased("2001:db8:1::9", "blue6", 1)
	with := func(p ipam.Pool, options ...option) ipam.Pool {
		for _, o := range options {
			o(&p)
		}
		return p
	}
	blue, red := net("blue", "1"), net("red", "2")

	for name, tc := range map[string]struct {
		pools  []ipam.Pool
		taken  map[string]string // address to pool
		want   ipam.PickRequest
		picks  []string
		reason ipam.Reason
	}{
		"one address of each family": {pools: blue, want: want(), picks: []string{"blue4 10.0.1.9", "blue6 2001:db8:1::9"}},
		"IPv6 first by name all the same": {
			pools: []ipam.Pool{with(blue[0], func(p *ipam.Pool) { p.Name = "z" }), blue[1]},
			want:  want(), picks: []string{"z 10.0.1.9", "blue6 2001:db8:1::9"},
		},
		"pools without network do not belong together": {pools: []ipam.Pool{v4, v6}, want: want(), picks: []string{"plain4 10.9.0.9"}},
		"IPv6 alone, by priority":                      {pools: []ipam.Pool{v4, with(v6, priority(1))}, want: want(), picks: []string{"plain6 2001:db8:9::9"}},
		"the first network by name":                    {pools: all(red, blue), want: want(), picks: []string{"blue4 10.0.1.9", "blue6 2001:db8:1::9"}},
		"the network asked for":                        {pools: all(red, blue), want: want(ofNetwork("red")), picks: []string{"red4 10.0.2.9", "red6 2001:db8:2::9"}},
		"the best pool of a network decides about its place": {
			pools: all(blue, []ipam.Pool{red[0], with(red[1], priority(1))}),
			want:  want(), picks: []string{"red4 10.0.2.9", "red6 2001:db8:2::9"},
		},
		"one family exhausted: the next network": {
			pools: all(red, blue), taken: map[string]string{"2001:db8:1::9": "blue6"},
			want: want(), picks: []string{"red4 10.0.2.9", "red6 2001:db8:2::9"},
		},
		"one family exhausted: a pool without network": {
			pools: append([]ipam.Pool{v4}, blue...), taken: map[string]string{"10.0.1.9": "blue4"},
			want: want(), picks: []string{"plain4 10.9.0.9"},
		},
		"one family exhausted everywhere": {
			pools: all(red, blue), taken: map[string]string{"2001:db8:1::9": "blue6", "10.0.2.9": "red4"},
			want: want(), reason: ipam.ReasonPoolExhausted,
		},
		"one family cordoned": {pools: []ipam.Pool{blue[0], with(blue[1], cordoned)}, want: want(), reason: ipam.ReasonPoolCordoned},
		"a second pool of a family": {
			pools: append([]ipam.Pool{pool(t, "blue4b", "10.0.3.0/24", []string{"10.0.3.9"}, network("blue"))}, blue...),
			taken: map[string]string{"10.0.1.9": "blue4"},
			want:  want(), picks: []string{"blue4b 10.0.3.9", "blue6 2001:db8:1::9"},
		},
		"a family that the host may not draw is not offered": {
			pools: []ipam.Pool{blue[0], with(blue[1], hosts(host2))}, want: want(), picks: []string{"blue4 10.0.1.9"},
		},
		"a family bound to another namespace is not offered": {
			pools: []ipam.Pool{blue[0], with(blue[1], namespaces("other"))}, want: want(), picks: []string{"blue4 10.0.1.9"},
		},
		"a pool that cannot be used is not offered": {
			pools: []ipam.Pool{blue[0], with(blue[1], problem("bad route"))}, want: want(), picks: []string{"blue4 10.0.1.9"},
		},

		"all held": {pools: blue, want: want(having(blue4, blue6))},
		"IPv4 held, IPv6 of the same network completes it": {
			pools: all(red, blue), want: want(having(blue4)), picks: []string{"blue6 2001:db8:1::9"},
		},
		"IPv6 held": {pools: all(red, blue), want: want(having(blue6)), picks: []string{"blue4 10.0.1.9"}},
		"IPv6 of the last network held": {
			pools: all(red, blue), want: want(having(leased("2001:db8:2::9", "red6", 1))), picks: []string{"red4 10.0.2.9"},
		},
		"the rest exhausted: refused, not taken elsewhere": {
			pools: all(red, blue), taken: map[string]string{"2001:db8:1::9": "blue6"}, want: want(having(blue4)),
			reason: ipam.ReasonPoolExhausted,
		},
		"the rest cordoned":                {pools: []ipam.Pool{blue[0], with(blue[1], cordoned)}, want: want(having(blue4)), reason: ipam.ReasonPoolCordoned},
		"the held address's pool cordoned": {pools: []ipam.Pool{with(blue[0], cordoned), blue[1]}, want: want(having(blue4)), picks: []string{"blue6 2001:db8:1::9"}},
		"held from a pool without network": {pools: append(blue, v4), want: want(having(leased("10.9.0.9", "plain4", 1)))},
		"held from a pool that is gone":    {pools: red, want: want(having(blue4))},
		"held, and no pool at all":         {want: want(having(blue4))},
		"held, host in no pool any more":   {pools: all(net("blue", "1", hosts(host2)), red), want: want(having(blue4))},
		"held, namespace bound elsewhere":  {pools: all(blue, []ipam.Pool{with(v4, namespaces("shop"))}), want: want(having(blue4))},
		"held, another network asked for":  {pools: all(blue, red), want: want(having(blue4), ofNetwork("red"))},
		"held from a pool that left the network": {
			pools: []ipam.Pool{with(blue[0], network("red")), blue[1], red[1]}, want: want(having(blue4)),
			picks: []string{"red6 2001:db8:2::9"},
		},
		"held from a pool that fits no more, whose network does": {
			pools: all([]ipam.Pool{with(blue[0], hosts(host2)), blue[1]}, red), want: want(having(blue4)),
			picks: []string{"blue6 2001:db8:1::9"},
		},
		"two held from different networks, both families there": {
			pools: all(blue, red), want: want(having(blue4, leased("2001:db8:2::9", "red6", 1))),
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(tc.pools...)
			for a, p := range tc.taken {
				x.take(p, a)
			}
			picks, refusal := x.Pick(tc.want, now)
			if diff := cmp.Diff(tc.picks, picked(picks)); diff != "" {
				t.Errorf("picks (-want +got):\n%s", diff)
			}
			if got := refusal; (got == nil) != (tc.reason == "") || got != nil && got.Reason != tc.reason {
				t.Errorf("refusal %q, want %q", refused(refusal), tc.reason)
			}
			if refusal != nil && len(x.core.state.Assumed.ByAddr) > 0 {
				t.Errorf("a refused request keeps %v", x.core.state.Assumed.ByAddr)
			}
		})
	}
}

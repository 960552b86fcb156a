package index

import (
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// A list of pools is tried in its order, whatever the priorities of the pools.
func TestPoolsInOrder(t *testing.T) {
	of := func(name string) option { return func(p *ipam.Pool) { p.Network = name } }
	for name, tc := range map[string]struct {
		pools   []string
		network string
		full    []string
		want    string
		reason  ipam.Reason
	}{
		"the first":               {pools: []string{"b", "a"}, want: "b"},
		"in the other order":      {pools: []string{"a", "b"}, want: "a"},
		"the first is full":       {pools: []string{"b", "a"}, full: []string{"b"}, want: "a"},
		"all are full":            {pools: []string{"b", "a"}, full: []string{"a", "b"}, reason: ipam.ReasonPoolExhausted},
		"one there is not, last":  {pools: []string{"a", "nowhere"}, reason: ipam.ReasonNotFound},
		"one there is not, first": {pools: []string{"nowhere", "a"}, reason: ipam.ReasonNotFound},
		"with a network":          {pools: []string{"b", "c"}, network: "san", want: "c"},
		"full in the network":     {pools: []string{"b", "c"}, network: "san", full: []string{"c"}, reason: ipam.ReasonPoolExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			x := New()
			x.Pools.SetPool(pool(t, "a", "10.0.1.0/24", []string{"10.0.1.5"}, func(p *ipam.Pool) { p.Priority = 9 }))
			x.Pools.SetPool(pool(t, "b", "10.0.2.0/24", []string{"10.0.2.5"}))
			x.Pools.SetPool(pool(t, "c", "10.0.3.0/24", []string{"10.0.3.5"}, of("san")))
			ask := func(pools []string, network string) ([]ipam.Pick, *ipam.Refusal) {
				return x.Pick(ipam.PickRequest{Host: ip(host1), Namespace: "shop", Pools: pools, Network: network}, now)
			}
			for _, full := range tc.full {
				if picks, refusal := ask([]string{full}, ""); len(picks) != 1 {
					t.Fatal(refusal)
				}
			}
			picks, refusal := ask(tc.pools, tc.network)
			switch {
			case tc.want == "" && (refusal == nil || refusal.Reason != tc.reason):
				t.Errorf("%v, %v, want %s", picks, refusal, tc.reason)
			case tc.want != "" && (len(picks) != 1 || picks[0].Pool.Name != tc.want):
				t.Errorf("%v, %v, want %s", picks, refusal, tc.want)
			}
		})
	}
}

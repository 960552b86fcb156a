package index

import (
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// What a group keeps of that which was handed over to it.
func TestStillCarved(t *testing.T) {
	blue := func(addresses string, options ...option) ipam.Pool { return part(t, "blue", addresses, options...) }
	eng := func(addresses string, options ...option) ipam.Pool {
		return part(t, "eng", addresses, append([]option{childOf("blue"), created(5), carved(t, "10.0.0.20-10.0.0.29")}, options...)...)
	}
	ops := func(addresses string) ipam.Pool { return part(t, "ops", addresses, childOf("blue"), created(1)) }
	kept := reserved("10.0.0.21", "blue", 1)
	kept.Claim = "shop/web"
	all := []ipam.Pool{blue("10.0.0.10-10.0.0.99"), eng("10.0.0.20-10.0.0.29")}
	for name, tc := range map[string]struct {
		pools  []ipam.Pool
		leases []lease.Lease
		want   string
	}{
		"all of it":                            {all, nil, "10.0.0.20-10.0.0.29"},
		"its own leases":                       {all, []lease.Lease{leased("10.0.0.20", "eng", 1)}, "10.0.0.20-10.0.0.29"},
		"what it has given back":               {[]ipam.Pool{all[0], eng("10.0.0.25-10.0.0.40")}, nil, "10.0.0.25-10.0.0.29"},
		"less what its parent gave out late":   {all, []lease.Lease{leased("10.0.0.20", "blue", 1)}, "10.0.0.21-10.0.0.29"},
		"less what a claim keeps of another":   {all, []lease.Lease{kept}, "10.0.0.20, 10.0.0.22-10.0.0.29"},
		"with what was set aside":              {all, []lease.Lease{reserved("10.0.0.20", "blue", 1)}, "10.0.0.20-10.0.0.29"},
		"with what cools":                      {all, []lease.Lease{available("10.0.0.20", "blue", 1)}, "10.0.0.20-10.0.0.29"},
		"less what another group gave out":     {append(all, ops("10.0.0.50")), []lease.Lease{leased("10.0.0.29", "ops", 1)}, "10.0.0.20-10.0.0.28"},
		"nothing that its parent serves":       {[]ipam.Pool{blue("10.0.0.21-10.0.0.99"), all[1]}, nil, "10.0.0.20"},
		"nothing that an older group has":      {append(all, ops("10.0.0.29-10.0.0.30")), nil, ""},
		"all, while there is no parent":        {all[1:], nil, "10.0.0.20-10.0.0.29"},
		"all, while the parent is of no use":   {[]ipam.Pool{blue("10.0.0.10-10.0.0.99", problem("bad")), all[1]}, nil, "10.0.0.20-10.0.0.29"},
		"nothing, while its spec is of no use": {[]ipam.Pool{all[0], eng("10.0.0.20-10.0.0.29", problem("bad"))}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf(tc.pools...)
			for _, l := range tc.leases {
				x.Feed.Watched(l)
			}
			if got := ipaddr.FormatSet(x.Leases.StillCarved("eng")); got != tc.want {
				t.Errorf("still carved: %q, want %q", got, tc.want)
			}
		})
	}
	if got := indexOf(blue("10.0.0.10-10.0.0.99")).Leases.StillCarved("blue"); len(got.Ranges()) > 0 {
		t.Errorf("of a pool without a parent: %v", got.Ranges())
	}
}

package index

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Which fields of a block do nothing: those that it sets otherwise than its parent, as far as it did not before.
func TestUnheeded(t *testing.T) {
	dns := func(server string) option {
		return func(p *ipam.Pool) { p.Link.DNS = &lease.DNS{Nameservers: []string{server}} }
	}
	linked := func(p *ipam.Pool) {
		p.Link.VLAN, p.Link.MTU, p.Cooldown, p.MaxPerHost, p.MaxPerNamespace = 7, 1400, time.Minute, 3, 5
		p.Quotas, p.Link.Routes = map[string]int{"shop": 2}, []lease.Route{{GW: ip("10.0.0.9")}}
	}
	gateway := func(a string) option { return func(p *ipam.Pool) { p.Plan.Gateway = ip(a) } }
	parent := part(t, "net", "10.0.0.0/24", splitInto(27), hosts(host1), network("prod"), linked, dns("10.0.0.53"))
	of := func(options ...option) ipam.Pool {
		return aBlock(t, parent, "10.0.0.64/27", "shop", append([]option{noHosts}, options...)...)
	}
	for name, tc := range map[string]struct {
		before, after ipam.Pool
		want          []string
	}{
		"nothing":             {of(), of(), nil},
		"what a block has":    {of(), of(cordoned, priority(5), namespaces("shop")), nil},
		"a new one":           {ipam.Pool{}, of(gateway("10.0.0.3")), nil},
		"a new one with more": {ipam.Pool{}, of(hosts(host2), network("lab")), []string{"hosts", "network"}},
		"as its parent has it": {
			of(), of(hosts(host1), network("prod"), linked, dns("10.0.0.53")), nil,
		},
		"it had it before": {of(network("lab"), gateway("10.0.0.3")), of(network("lab"), gateway("10.0.0.3"), cordoned), nil},
		"it loses it":      {of(network("lab"), priority(-5)), of(), nil},
		"another one":      {of(network("lab")), of(network("office")), []string{"network"}},
		"the rest": {
			of(), of(hostSubnets("192.168.1.0/24"), hostSelector("rack=7"), gateway("10.0.0.3"), priority(-1), dns("10.0.0.54"),
				func(p *ipam.Pool) {
					p.NamespaceSelector, p.NotDefault, p.Plan.Excluded = oneLabel("a=b"), true, mustSet(t, "10.0.0.70")
					p.Link.VLAN, p.Link.MTU, p.Cooldown, p.MaxPerHost, p.MaxPerNamespace = 8, 1500, time.Hour, 4, 6
					p.Quotas, p.Link.Routes = map[string]int{"shop": 3}, []lease.Route{{}}
				}), []string{
				"gateway", "hostSubnets", "hostSelector", "excludeIPs", "namespaceSelector", "default", "priority",
				"maxPerHost", "maxPerNamespace", "quotas", "vlan", "mtu", "routes", "dns", "cooldown",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, slices.Clone(tc.after.Unheeded(tc.before, parent))); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

package system

import (
	"strings"
	"testing"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/importer"
)

func TestRewrite(t *testing.T) {
	pool := func(name, third, network string) *v1.BCSNetPool {
		o := importer.Pool(name)
		o.Spec = v1.BCSNetPoolSpec{
			Net: "10.1." + third + ".0", Mask: 24, Network: network,
			AvailableIPs: []string{"10.1." + third + ".20-10.1." + third + ".40"},
		}
		return &o
	}
	pools := []*v1.BCSNetPool{pool("lan", "0", "lan"), pool("lan-2", "1", "lan"), pool("dmz", "2", "dmz"), pool("bare", "3", "")}
	for name, c := range map[string]struct{ config, want string }{
		"Whereabouts": {
			`{"cniVersion":"0.3.1","type":"macvlan","mtu":1400,"ipam":{"type":"whereabouts","range":"10.1.0.0/24","gateway":"10.1.0.1"}}`,
			`{"cniVersion":"0.3.1","ipam":{"network":"lan","type":"bcsnet-ipam"},"mtu":1400,"type":"macvlan"}`,
		},
		"two ranges of one network": {
			`{"ipam":{"type":"whereabouts","ipRanges":[{"range":"10.1.0.0/24"},{"range":"10.1.1.0/24","range_start":"10.1.1.30"}]}}`,
			`{"ipam":{"network":"lan","type":"bcsnet-ipam"}}`,
		},
		"a list": {
			`{"name":"n","plugins":[{"type":"vlan","ipam":{"type":"host-local","ranges":[[{"subnet":"10.1.2.0/24"}]]}},{"type":"tuning"}]}`,
			`{"name":"n","plugins":[{"ipam":{"network":"dmz","type":"bcsnet-ipam"},"type":"vlan"},{"type":"tuning"}]}`,
		},
		"Spiderpool, by name": {
			`{"ipam":{"type":"spiderpool","default_ipv4_ippool":["dmz"]}}`, `{"ipam":{"network":"dmz","type":"bcsnet-ipam"}}`,
		},
		"ours": {`{"ipam":{"type":"bcsnet-ipam"}}`, `{"ipam":{"type":"bcsnet-ipam"}}`},
		"two networks": {
			`{"ipam":{"type":"whereabouts","ipRanges":[{"range":"10.1.0.0/24"},{"range":"10.1.2.0/24"}]}}`,
			"error: ipam of the type whereabouts: pools of the networks lan and dmz have its addresses",
		},
		"no network":  {`{"ipam":{"type":"host-local","subnet":"10.1.3.0/24"}}`, "error: ipam of the type host-local: pool bare has its addresses and no network: bcsnetctl pool edit bare"},
		"no pool":     {`{"ipam":{"type":"host-local","subnet":"10.9.0.0/24"}}`, "error: ipam of the type host-local: no pool has its addresses: import them first"},
		"no range":    {`{"ipam":{"type":"dhcp"}}`, "error: ipam of the type dhcp: it names no range and no pool"},
		"wrong range": {`{"ipam":{"type":"whereabouts","range":"10.1.0.0"}}`, "error: ipam of the type whereabouts: range \"10.1.0.0\""},
		"no JSON":     {`yes`, "error: invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := Rewrite([]byte(c.config), pools)
			got := string(out.Config)
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

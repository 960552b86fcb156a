package api

import (
	"math"
	"strings"
	"testing"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

func TestPoolScopeAndLink(t *testing.T) {
	judge(t, map[string]poolCase{
		"namespaces": {edits: edits{namespaces("default", "team-a", "7")}},
		"namespace in capital": {edits: edits{namespaces("default", "Team")}, want: []string{
			`spec.namespaces[1]: Invalid value: "Team": ` + notNamespace,
		}},
		"namespace with a dot": {edits: edits{namespaces("a.b")}, want: []string{
			`spec.namespaces[0]: Invalid value: "a.b": ` + notNamespace,
		}},
		"namespace too long": {edits: edits{namespaces(strings.Repeat("n", 64))}, want: []string{
			"spec.namespaces[0]: Too long: may not be more than 63 bytes",
			unchecked,
		}},
		"namespace twice": {edits: edits{namespaces("a", "a")}, want: []string{
			`spec.namespaces[1]: Duplicate value: "a"`,
		}},
		"network": {edits: edits{network("blue.vlan-7")}},
		"network in capitals": {edits: edits{network("Blue")}, want: []string{
			`spec.network: Invalid value: "Blue": must be lower-case letters, digits, - and ., with a letter or digit at both ends and around each dot`,
		}},
		"network ends in a dot": {edits: edits{network("blue.")}, want: []string{
			`spec.network: Invalid value: "blue.": must be lower-case letters, digits, - and ., with a letter or digit at both ends and around each dot`,
		}},

		"vlan 4094": {edits: edits{vlan(4094)}},
		"vlan 4095": {edits: edits{vlan(4095)}, want: []string{
			"spec.vlan: Invalid value: 4095: spec.vlan in body should be less than or equal to 4094",
		}},
		"vlan -1": {edits: edits{vlan(-1)}, want: []string{
			"spec.vlan: Invalid value: -1: spec.vlan in body should be greater than or equal to 0",
		}},
		"1 per host":      {edits: edits{perHost(1)}},
		"65,536 per host": {edits: edits{perHost(65536)}},
		"-1 per host": {edits: edits{perHost(-1)}, want: []string{
			"spec.maxPerHost: Invalid value: -1: spec.maxPerHost in body should be greater than or equal to 0",
		}},
		"65,537 per host": {edits: edits{perHost(65537)}, want: []string{
			"spec.maxPerHost: Invalid value: 65537: spec.maxPerHost in body should be less than or equal to 65536",
		}},
		"quotas": {edits: edits{quotas(v1.NamespaceQuota{Namespace: "shop", Max: 0}, v1.NamespaceQuota{Namespace: "bank", Max: math.MaxInt32}), func(s *v1.BCSNetPoolSpec) { s.MaxPerNamespace = 7 }}},
		"-1 per namespace": {edits: edits{func(s *v1.BCSNetPoolSpec) { s.MaxPerNamespace = -1 }}, want: []string{
			"spec.maxPerNamespace: Invalid value: -1: spec.maxPerNamespace in body should be greater than or equal to 0",
		}},
		"a quota of -1": {edits: edits{quotas(v1.NamespaceQuota{Namespace: "shop", Max: -1})}, want: []string{
			"spec.quotas[0].max: Invalid value: -1: spec.quotas[0].max in body should be greater than or equal to 0",
		}},
		"two quotas of a namespace": {edits: edits{quotas(v1.NamespaceQuota{Namespace: "shop", Max: 1}, v1.NamespaceQuota{Namespace: "shop", Max: 2})}, want: []string{
			`spec.quotas[1]: Duplicate value: {"namespace":"shop"}`,
		}},
		"a quota of no namespace": {edits: edits{quotas(v1.NamespaceQuota{Namespace: "Shop", Max: 1})}, want: []string{
			`spec.quotas[0].namespace: Invalid value: "Shop": ` + notNamespace,
		}},
		"mtu 68": {edits: edits{mtu(68)}},
		"mtu 67": {edits: edits{mtu(67)}, want: []string{
			"spec.mtu: Invalid value: 67: must be 68 to 65535, at least 1280 for IPv6, or 0 to leave it to the plugin",
		}},
		"mtu 65536": {edits: edits{mtu(65536)}, want: []string{
			"spec.mtu: Invalid value: 65536: spec.mtu in body should be less than or equal to 65535",
		}},
		"mtu 1280 for IPv6": {edits: edits{v6, mtu(1280)}},
		"mtu 1279 for IPv6": {edits: edits{v6, mtu(1279)}, want: []string{
			"spec.mtu: Invalid value: mtu 1279 is too small for IPv6: use at least 1280, or 0 to leave it to the plugin",
		}},
		"priority 1001": {edits: edits{func(s *v1.BCSNetPoolSpec) { s.Priority = 1001 }}, want: []string{
			"spec.priority: Invalid value: 1001: spec.priority in body should be less than or equal to 1000",
		}},
		"materialize Always": {edits: edits{func(s *v1.BCSNetPoolSpec) { s.Materialize = v1.MaterializeAlways }}},
		"materialize Never": {edits: edits{func(s *v1.BCSNetPoolSpec) { s.Materialize = "Never" }}, want: []string{
			`spec.materialize: Unsupported value: "Never": supported values: "Always", "OnDemand", "Auto"`,
			unchecked,
		}},
		"allocationOrder Spread": {edits: edits{func(s *v1.BCSNetPoolSpec) { s.AllocationOrder = v1.AllocationSpread }}},
		"allocationOrder Lowest": {edits: edits{func(s *v1.BCSNetPoolSpec) { s.AllocationOrder = v1.AllocationLowest }}},
		"allocationOrder First": {edits: edits{func(s *v1.BCSNetPoolSpec) { s.AllocationOrder = "First" }}, want: []string{
			`spec.allocationOrder: Unsupported value: "First": supported values: "Spread", "Lowest"`,
			unchecked,
		}},

		"routes": {edits: edits{route("0.0.0.0/0", ""), route("10.8.0.0/16", "10.0.0.9"), route("fd00::/8", "2001:db8::1")}},
		"route is no CIDR": {edits: edits{route("10.8.0.0", "")}, want: []string{
			`spec.routes[0].dst: Invalid value: "10.8.0.0": must be a CIDR, such as 10.8.0.0/16 or 0.0.0.0/0`,
		}},
		"route has host bits": {edits: edits{route("10.8.0.1/16", "")}, want: []string{
			`spec.routes[0].dst: Invalid value: "10.8.0.1/16": has bits set beyond the prefix length: write 10.8.0.0/16`,
		}},
		"route gw is no address": {edits: edits{route("10.8.0.0/16", "gw")}, want: []string{
			`spec.routes[0].gw: Invalid value: "gw": ` + notAddress,
		}},
		"route gw of other family": {edits: edits{route("10.8.0.0/16", "2001:db8::1")}, want: []string{
			"spec.routes[0].gw: Invalid value: gw 2001:db8::1 is not of the family of dst 10.8.0.0/16",
		}},
		"route without gw, other family": {edits: edits{route("10.8.0.0/16", ""), route("fd00::/8", "")}, want: []string{
			"spec.routes: Invalid value: the route to fd00::/8 has no gw, and the gateway of the pool is not of its family: set gw",
		}},
		"no gateway, route without gw": {edits: edits{subnet("10.0.0.0", 24, ""), route("10.8.0.0/16", "10.0.0.9"),
			route("10.9.0.0/16", "")}, want: []string{
			"spec.routes: Invalid value: the route to 10.9.0.0/16 has no gw, and the pool has no gateway: set one of them",
		}},
		"no gateway, route with gw": {edits: edits{subnet("10.0.0.0", 24, ""), route("10.8.0.0/16", "10.0.0.9")}},
		"nameservers":               {edits: edits{nameservers("10.0.0.53", "2001:db8::53")}},
		"nameserver is no address": {edits: edits{nameservers("10.0.0.53", "dns.local")}, want: []string{
			`spec.dns.nameservers[1]: Invalid value: "dns.local": ` + notNameserver,
		}},
	})
}

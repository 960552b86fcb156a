package api

import (
	"testing"
)

func TestPoolSubnet(t *testing.T) {
	judge(t, map[string]poolCase{
		"document": {},
		"IPv6":     {edits: edits{v6, available("2001:db8::20", "2001:db8::30-2001:db8::3f", "2001:db8::1:0/112")}},
		"IPv6 written in full": {edits: edits{subnet("2001:0db8:0000:0000:0000:0000:0000:0000", 64, "2001:0DB8::0001"),
			available("2001:0db8:0000:0000:0000:0000:0000:0020~2001:0db8:0000:0000:0000:0000:0000:0030")}},

		"net is no address": {edits: edits{subnet("10.0.0", 24, "10.0.0.1")}, want: []string{
			`spec.net: Invalid value: "10.0.0": ` + notSubnet,
		}},
		"net is a CIDR": {edits: edits{subnet("10.0.0.0/24", 24, "10.0.0.1")}, want: []string{
			`spec.net: Invalid value: "10.0.0.0/24": ` + notSubnet,
		}},
		"net is mapped": {edits: edits{subnet("::ffff:10.0.0.0", 120, "::ffff:10.0.0.1")}, want: []string{
			`spec.net: Invalid value: "::ffff:10.0.0.0": ` + notSubnet,
			`spec.gateway: Invalid value: "::ffff:10.0.0.1": ` + notAddress,
		}},
		"net has a zone": {edits: edits{subnet("fe80::%eth0", 64, "fe80::1")}, want: []string{
			`spec.net: Invalid value: "fe80::%eth0": ` + notSubnet,
		}},
		"net has leading 0": {edits: edits{subnet("10.0.00.0", 24, "10.0.0.1")}, want: []string{
			`spec.net: Invalid value: "10.0.00.0": ` + notSubnet,
		}},
		"net has host bits": {edits: edits{subnet("10.0.0.7", 24, "10.0.0.1")}, want: []string{
			"spec.net: Invalid value: net 10.0.0.7 has bits set beyond mask 24: the address of that subnet is 10.0.0.0",
		}},
		"IPv6 net host bits": {edits: edits{subnet("2001:db8::1", 64, "2001:db8::2")}, want: []string{
			"spec.net: Invalid value: net 2001:db8::1 has bits set beyond mask 64: the address of that subnet is 2001:db8::",
		}},

		"mask 0": {edits: edits{subnet("10.0.0.0", 0, "10.0.0.1")}, want: []string{
			"spec.mask: Invalid value: 0: spec.mask in body should be greater than or equal to 1",
		}},
		"mask -1": {edits: edits{subnet("10.0.0.0", -1, "10.0.0.1")}, want: []string{
			"spec.mask: Invalid value: -1: spec.mask in body should be greater than or equal to 1",
		}},
		"mask 1":        {edits: edits{subnet("128.0.0.0", 1, "128.0.0.1")}},
		"mask 9":        {edits: edits{subnet("10.0.0.0", 9, "10.0.0.1")}},
		"mask 10":       {edits: edits{subnet("10.0.0.0", 10, "10.0.0.1")}},
		"mask 31":       {edits: edits{subnet("10.0.0.0", 31, "10.0.0.0")}},
		"mask 31 upper": {edits: edits{subnet("10.0.0.0", 31, "10.0.0.1")}},
		"mask 32":       {edits: edits{subnet("10.0.0.7", 32, "10.0.0.1")}},
		"mask 33": {edits: edits{subnet("10.0.0.0", 33, "10.0.0.1")}, want: []string{
			"spec.mask: Invalid value: mask 33 is too long for the IPv4 subnet 10.0.0.0: use 1 to 32",
		}},
		"mask 64 on IPv4": {edits: edits{subnet("10.0.0.0", 64, "10.0.0.1")}, want: []string{
			"spec.mask: Invalid value: mask 64 is too long for the IPv4 subnet 10.0.0.0: use 1 to 32",
		}},
		"IPv6 mask 0": {edits: edits{subnet("2001:db8::", 0, "2001:db8::1")}, want: []string{
			"spec.mask: Invalid value: 0: spec.mask in body should be greater than or equal to 1",
		}},
		"IPv6 mask 100": {edits: edits{subnet("2001:db8::", 100, "2001:db8::1")}},
		"IPv6 mask 128": {edits: edits{subnet("2001:db8::7", 128, "fe80::1")}},
		"mask 129": {edits: edits{subnet("2001:db8::", 129, "2001:db8::1")}, want: []string{
			"spec.mask: Invalid value: 129: spec.mask in body should be less than or equal to 128",
		}},
		"mask 5000": {edits: edits{subnet("10.0.0.0", 5000, "10.0.0.1"), available("10.0.0.2")}, want: []string{
			"spec.mask: Invalid value: 5000: spec.mask in body should be less than or equal to 128",
		}},

		"gateway is no address": {edits: edits{subnet("10.0.0.0", 24, "10.0.0.256")}, want: []string{
			`spec.gateway: Invalid value: "10.0.0.256": ` + notAddress,
		}},
		"no gateway":           {edits: edits{subnet("10.0.0.0", 24, "")}},
		"no gateway, one host": {edits: edits{subnet("10.0.0.20", 32, ""), available("10.0.0.20")}},
		"no gateway, IPv6":     {edits: edits{subnet("2001:db8::", 64, ""), available("2001:db8::20")}},
		"gateway of other family": {edits: edits{subnet("10.0.0.0", 24, "2001:db8::1")}, want: []string{
			"spec.gateway: Invalid value: gateway 2001:db8::1 is not of the family of net 10.0.0.0: use an address of the subnet",
		}},
		"gateway outside": {edits: edits{subnet("10.0.0.0", 24, "10.0.1.1")}, want: []string{
			"spec.gateway: Invalid value: gateway 10.0.1.1 does not lie in the subnet 10.0.0.0/24: use an address of the subnet",
		}},
		"gateway is network": {edits: edits{subnet("10.0.0.0", 24, "10.0.0.0")}, want: []string{
			"spec.gateway: Invalid value: gateway 10.0.0.0 is the network address of the subnet 10.0.0.0/24: use an address between the two",
		}},
		"gateway is broadcast": {edits: edits{subnet("10.0.0.0", 24, "10.0.0.255")}, want: []string{
			"spec.gateway: Invalid value: gateway 10.0.0.255 is the broadcast address of the subnet 10.0.0.0/24: use an address between the two",
		}},
		"gateway is broadcast /22": {edits: edits{subnet("10.0.4.0", 22, "10.0.7.255")}, want: []string{
			"spec.gateway: Invalid value: gateway 10.0.7.255 is the broadcast address of the subnet 10.0.4.0/22: use an address between the two",
		}},
		"gateway inside /22":      {edits: edits{subnet("10.0.4.0", 22, "10.0.4.255")}},
		"gateway is last but one": {edits: edits{subnet("10.0.0.0", 24, "10.0.0.254")}},
		"gateway is broadcast /1": {edits: edits{subnet("128.0.0.0", 1, "255.255.255.255")}, want: []string{
			"spec.gateway: Invalid value: gateway 255.255.255.255 is the broadcast address of the subnet 128.0.0.0/1: use an address between the two",
		}},
		"gateway is broadcast /30": {edits: edits{subnet("10.0.0.4", 30, "10.0.0.7")}, want: []string{
			"spec.gateway: Invalid value: gateway 10.0.0.7 is the broadcast address of the subnet 10.0.0.4/30: use an address between the two",
		}},
		"gateway /32, other family": {edits: edits{subnet("10.0.0.7", 32, "fe80::1")}, want: []string{
			"spec.gateway: Invalid value: gateway fe80::1 is not of the family of net 10.0.0.7: use an address of the subnet",
		}},
		"IPv6 gateway outside": {edits: edits{subnet("2001:db8::", 64, "2001:db8:0:1::1")}, want: []string{
			"spec.gateway: Invalid value: gateway 2001:db8:0:1::1 does not lie in the subnet 2001:db8::/64: use an address of the subnet, " +
				"or a link-local one such as fe80::1",
		}},
		"IPv6 gateway is link-local":      {edits: edits{subnet("2001:db8::", 64, "fe80::1"), available("2001:db8::20")}},
		"IPv6 gateway is last link-local": {edits: edits{subnet("2001:db8::", 64, "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff")}},
		"IPv6 gateway is site-local": {edits: edits{subnet("2001:db8::", 64, "fec0::1")}, want: []string{
			"spec.gateway: Invalid value: gateway fec0::1 does not lie in the subnet 2001:db8::/64: use an address of the subnet, " +
				"or a link-local one such as fe80::1",
		}},
		"IPv4 gateway is link-local": {edits: edits{subnet("10.0.0.0", 24, "169.254.1.1")}, want: []string{
			"spec.gateway: Invalid value: gateway 169.254.1.1 does not lie in the subnet 10.0.0.0/24: use an address of the subnet",
		}},
		"gateway of other family, link-local": {edits: edits{subnet("10.0.0.0", 24, "fe80::1")}, want: []string{
			"spec.gateway: Invalid value: gateway fe80::1 is not of the family of net 10.0.0.0: use an address of the subnet",
		}},
		"IPv6 gateway is anycast": {edits: edits{subnet("2001:db8::", 64, "2001:db8::")}},
		"host bits and outside": {edits: edits{subnet("10.0.0.7", 24, "10.0.1.1")}, want: []string{
			"spec.net: Invalid value: net 10.0.0.7 has bits set beyond mask 24: the address of that subnet is 10.0.0.0",
			"spec.gateway: Invalid value: gateway 10.0.1.1 does not lie in the subnet 10.0.0.7/24: use an address of the subnet",
		}},
	})
}

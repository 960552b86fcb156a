package api

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const notOperator = `spec.hostSelector: Invalid value: each of matchExpressions must have the operator In or NotIn, with ` +
	`values, or Exists or DoesNotExist, without`

func matching(all ...metav1.LabelSelectorRequirement) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: all}
}

func TestPoolEntries(t *testing.T) {
	judge(t, map[string]poolCase{
		"hosts of both families": {edits: edits{hosts("10.9.9.9", "2001:db8:9::9")}},
		"host is no address": {edits: edits{hosts("10.0.0.11", "node-1")}, want: []string{
			`spec.hosts[1]: Invalid value: "node-1": ` + notHost,
		}},
		"host is a CIDR": {edits: edits{hosts("10.0.0.0/24")}, want: []string{
			`spec.hosts[0]: Invalid value: "10.0.0.0/24": ` + notHost,
		}},

		"host subnets of both families": {edits: edits{hosts(), hostSubnets("10.9.0.0/16", "2001:db8:9::/48", "10.9.9.9/32", "0.0.0.0/0")}},
		"no host subnet":                {edits: edits{hostSubnets()}},
		"host subnet is an address": {edits: edits{hostSubnets("10.9.0.0/16", "10.9.9.9")}, want: []string{
			`spec.hostSubnets[1]: Invalid value: "10.9.9.9": must be a CIDR, such as 10.0.0.0/16`,
		}},
		"host subnet has bits set": {edits: edits{hostSubnets("10.9.9.9/16")}, want: []string{
			`spec.hostSubnets[0]: Invalid value: "10.9.9.9/16": has bits set beyond the prefix length: write 10.9.0.0/16`,
		}},
		"host subnet is of no family": {edits: edits{hostSubnets("::ffff:10.9.0.0/112")}, want: []string{
			`spec.hostSubnets[0]: Invalid value: "::ffff:10.9.0.0/112": must be a CIDR, such as 10.0.0.0/16`,
		}},

		"host selector": {edits: edits{hosts(), hostSelector(metav1.LabelSelector{MatchLabels: map[string]string{"rack": "7"}})}},
		"host selector of expressions": {edits: edits{hosts(), hostSelector(matching(
			metav1.LabelSelectorRequirement{Key: "rack", Operator: metav1.LabelSelectorOpIn, Values: []string{"7", "8"}},
			metav1.LabelSelectorRequirement{Key: "spare", Operator: metav1.LabelSelectorOpDoesNotExist}))}},
		"host selector beside hosts and subnets": {edits: edits{
			hostSubnets("10.9.0.0/16"), hostSelector(metav1.LabelSelector{MatchLabels: map[string]string{"rack": "7"}}),
		}},
		"host selector is empty": {edits: edits{hostSelector(metav1.LabelSelector{})}, want: []string{
			`spec.hostSelector: Invalid value: must have matchLabels or matchExpressions: an empty selector would choose every node`,
		}},
		"host selector has empty parts": {edits: edits{hostSelector(metav1.LabelSelector{
			MatchLabels: map[string]string{}, MatchExpressions: []metav1.LabelSelectorRequirement{},
		})}, want: []string{
			`spec.hostSelector: Invalid value: must have matchLabels or matchExpressions: an empty selector would choose every node`,
		}},
		"host selector has no such operator": {edits: edits{hostSelector(matching(
			metav1.LabelSelectorRequirement{Key: "rack", Operator: "Near", Values: []string{"7"}}))}, want: []string{notOperator}},
		"host selector lacks values": {edits: edits{hostSelector(matching(
			metav1.LabelSelectorRequirement{Key: "rack", Operator: metav1.LabelSelectorOpIn}))}, want: []string{notOperator}},
		"host selector has values too many": {edits: edits{hostSelector(matching(
			metav1.LabelSelectorRequirement{Key: "rack", Operator: metav1.LabelSelectorOpExists, Values: []string{"7"}}))},
			want: []string{notOperator}},

		"all notations": {edits: edits{available("10.0.0.20", "10.0.0.30-10.0.0.39", "10.0.0.40~10.0.0.49", "10.0.0.64/26", "10.0.0.200/32")}},
		"whole subnet":  {edits: edits{available("10.0.0.0/24")}},
		"range of one":  {edits: edits{available("10.0.0.20-10.0.0.20")}},
		"entry is no address": {edits: edits{available("10.0.0.20", "10.0.0.300")}, want: []string{
			`spec.availableIPs[1]: Invalid value: "10.0.0.300": ` + notEntry,
		}},
		"entry is a short range": {edits: edits{available("10.0.0.20-30")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "10.0.0.20-30": ` + notEntry,
		}},
		"entry has three ends": {edits: edits{available("10.0.0.20-10.0.0.22-10.0.0.24")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "10.0.0.20-10.0.0.22-10.0.0.24": ` + notEntry,
		}},
		"entry has blanks": {edits: edits{available("10.0.0.20 - 10.0.0.22")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "10.0.0.20 - 10.0.0.22": ` + notEntry,
		}},
		"entry has half a range": {edits: edits{available("10.0.0.20-")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "10.0.0.20-": ` + notEntry,
		}},
		"entry mixes families": {edits: edits{available("10.0.0.20-2001:db8::1")}, want: []string{
			"spec.availableIPs: Invalid value: 10.0.0.20-2001:db8::1 does not lie in the subnet 10.0.0.0/24: list only addresses of the subnet",
			`spec.availableIPs[0]: Invalid value: "10.0.0.20-2001:db8::1": ` + notEntry,
		}},
		"entry mixes families 2": {edits: edits{v6, available("2001:db8::1-10.0.0.20")}, want: []string{
			"spec.availableIPs: Invalid value: 2001:db8::1-10.0.0.20 does not lie in the subnet 2001:db8::/64: list only addresses of the subnet",
			`spec.availableIPs[0]: Invalid value: "2001:db8::1-10.0.0.20": ` + notEntry,
		}},
		"entry is mapped": {edits: edits{available("::ffff:10.0.0.20")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "::ffff:10.0.0.20": ` + notEntry,
		}},
		"entry is two in one": {edits: edits{available("10.0.0.20,10.0.0.21")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "10.0.0.20,10.0.0.21": ` + notEntry,
		}},
		"entry is empty": {edits: edits{available("")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "": ` + notEntry,
		}},
		"CIDR has host bits": {edits: edits{available("10.0.0.70/26")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "10.0.0.70/26": has bits set beyond the prefix length: write 10.0.0.64/26`,
		}},
		"CIDR is too long": {edits: edits{available("10.0.0.0/33")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "10.0.0.0/33": ` + notEntry,
		}},
		"CIDR outside": {edits: edits{available("10.0.1.0/26")}, want: []string{
			"spec.availableIPs: Invalid value: 10.0.1.0/26 does not lie in the subnet 10.0.0.0/24: list only addresses of the subnet",
		}},
		"CIDR around the subnet": {edits: edits{available("10.0.0.0/23")}, want: []string{
			"spec.availableIPs: Invalid value: 10.0.0.0/23 does not lie in the subnet 10.0.0.0/24: list only addresses of the subnet",
		}},
		"range is reversed": {edits: edits{available("10.0.0.30-10.0.0.20")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "10.0.0.30-10.0.0.20": is reversed: write 10.0.0.20-10.0.0.30`,
		}},
		"range is reversed, ~": {edits: edits{subnet("10.0.0.0", 8, "10.0.0.1"), available("10.1.0.0~10.0.255.255")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "10.1.0.0~10.0.255.255": is reversed: write 10.0.255.255-10.1.0.0`,
		}},
		"range in order by octets": {edits: edits{subnet("10.0.0.0", 8, "10.0.0.1"), available("10.0.255.255-10.1.0.0")}},
		"range ends outside": {edits: edits{available("10.0.0.20-10.0.1.20")}, want: []string{
			"spec.availableIPs: Invalid value: 10.0.0.20-10.0.1.20 does not lie in the subnet 10.0.0.0/24: list only addresses of the subnet",
		}},
		"range begins outside": {edits: edits{available("9.9.9.9-10.0.0.20")}, want: []string{
			"spec.availableIPs: Invalid value: 9.9.9.9-10.0.0.20 does not lie in the subnet 10.0.0.0/24: list only addresses of the subnet",
		}},
		"single outside": {edits: edits{available("10.0.0.20", "10.0.1.20", "10.0.2.20")}, want: []string{
			"spec.availableIPs: Invalid value: 10.0.1.20 does not lie in the subnet 10.0.0.0/24: list only addresses of the subnet",
		}},
		"IPv6 entry in IPv4 pool": {edits: edits{available("2001:db8::20")}, want: []string{
			"spec.availableIPs: Invalid value: 2001:db8::20 does not lie in the subnet 10.0.0.0/24: list only addresses of the subnet",
		}},
		"IPv4 entry in IPv6 pool": {edits: edits{v6, available("10.0.0.20")}, want: []string{
			"spec.availableIPs: Invalid value: 10.0.0.20 does not lie in the subnet 2001:db8::/64: list only addresses of the subnet",
		}},
		"IPv6 /64":            {edits: edits{v6, available("2001:db8::/64")}},
		"IPv6 range of a /64": {edits: edits{v6, available("2001:db8::-2001:db8::ffff:ffff:ffff:ffff")}},
		"IPv6 /63": {edits: edits{subnet("2001:db8::", 48, "2001:db8::1"), available("2001:db8::/63")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "2001:db8::/63": is larger than a /64, the largest that a pool can hold`,
		}},
		"IPv6 range beyond a /64": {edits: edits{subnet("2001:db8::", 48, "2001:db8::1"), available("2001:db8::1-2001:db8:0:1::1")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "2001:db8::1-2001:db8:0:1::1": reaches beyond one /64, the largest range that a pool can hold`,
		}},
		"IPv6 host bits": {edits: edits{v6, available("2001:db8::1:1/112")}, want: []string{
			`spec.availableIPs[0]: Invalid value: "2001:db8::1:1/112": has bits set beyond the prefix length: write 2001:db8::1:0/112`,
		}},
		"IPv6 outside": {edits: edits{v6, available("2001:db8:0:1::20", "2001:db8:0:1::/80")}, want: []string{
			"spec.availableIPs: Invalid value: 2001:db8:0:1::20 does not lie in the subnet 2001:db8::/64: list only addresses of the subnet",
		}},

		"exclude": {edits: edits{available("10.0.0.0/24"), excluded("10.0.0.20", "10.0.0.30~10.0.0.39", "10.0.0.64/26")}},
		"exclude outside": {edits: edits{excluded("10.0.0.20", "10.0.1.20-10.0.1.30")}, want: []string{
			"spec.excludeIPs: Invalid value: 10.0.1.20-10.0.1.30 does not lie in the subnet 10.0.0.0/24: list only addresses of the subnet",
		}},
		"exclude reversed": {edits: edits{excluded("10.0.0.30-10.0.0.20")}, want: []string{
			`spec.excludeIPs[0]: Invalid value: "10.0.0.30-10.0.0.20": is reversed: write 10.0.0.20-10.0.0.30`,
		}},
		"exclude no address": {edits: edits{excluded("all")}, want: []string{
			`spec.excludeIPs[0]: Invalid value: "all": ` + notEntry,
		}},
		"exclude host bits": {edits: edits{excluded("10.0.0.70/26")}, want: []string{
			`spec.excludeIPs[0]: Invalid value: "10.0.0.70/26": has bits set beyond the prefix length: write 10.0.0.64/26`,
		}},
		"exclude beyond a /64": {edits: edits{subnet("2001:db8::", 48, "2001:db8::1"), excluded("2001:db8::/48")}, want: []string{
			`spec.excludeIPs[0]: Invalid value: "2001:db8::/48": is larger than a /64, the largest that a pool can hold`,
		}},
	})
}

package api

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// address is the address of the bcs-netservice-controller document, with digits for xx.
func address(name string, edit ...func(*v1.BCSNetIP)) *v1.BCSNetIP {
	o := &v1.BCSNetIP{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.BCSNetIPSpec{Pool: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1"},
	}
	if strings.Contains(name, "-") {
		o.Spec = v1.BCSNetIPSpec{Pool: "v6", Mask: 64, Gateway: "2001:db8::1"}
	}
	for _, e := range edit {
		e(o)
	}
	return o
}

func TestIPRules(t *testing.T) {
	c := connect(t)
	const six = "2001-0db8-0000-0000-0000-0000-0000-0020"
	type edits = []func(*v1.BCSNetIP)
	spelled := func(a string) edits { return edits{func(o *v1.BCSNetIP) { o.Spec.Address = a }} }
	status := func(s v1.BCSNetIPStatus) edits { return edits{func(o *v1.BCSNetIP) { o.Status = s }} }
	given := func(s v1.GivenSettings) edits {
		return status(v1.BCSNetIPStatus{Status: v1.IPActive, ContainerID: "c1", Given: &s, GivenTo: "c1"})
	}
	tests := map[string]struct {
		name  string
		edits edits
		want  []string // what the API server says; nothing: it takes the address
	}{
		"document": {name: "10.0.0.20"},
		"IPv6":     {name: six},
		"name is no address": {name: "web-0", want: []string{
			"metadata: Invalid value: name web-0 " + notName,
		}},
		"name is out of range": {name: "10.0.0.256", want: []string{
			"metadata: Invalid value: name 10.0.0.256 " + notName,
		}},
		"name has leading 0": {name: "10.0.0.020", want: []string{
			"metadata: Invalid value: name 10.0.0.020 " + notName,
		}},
		"IPv6 name is short": {name: "2001-db8--20", want: []string{
			"metadata: Invalid value: name 2001-db8--20 " + notName,
		}},
		"IPv6 name lacks zeros": {name: "2001-db8-0-0-0-0-0-20", want: []string{
			"metadata: Invalid value: name 2001-db8-0-0-0-0-0-20 " + notName,
		}},
		"IPv6 name is mapped": {name: "0000-0000-0000-0000-0000-ffff-0a00-0014", want: []string{
			"metadata: Invalid value: name 0000-0000-0000-0000-0000-ffff-0a00-0014 " + notName,
		}},
		"name is a CIDR": {name: "10.0.0.20-24", want: []string{
			"metadata: Invalid value: name 10.0.0.20-24 " + notName,
		}},

		"address is the same":      {name: "10.0.0.20", edits: spelled("10.0.0.20")},
		"IPv6 address is the same": {name: six, edits: spelled("2001:db8::20")},
		"IPv6 address in capitals": {name: six, edits: spelled("2001:0DB8::0020")},
		"address differs": {name: "10.0.0.20", edits: spelled("10.0.0.21"), want: []string{
			"spec.address: Invalid value: address 10.0.0.21 is not the address 10.0.0.20 that the object is named after",
		}},
		"IPv6 address differs": {name: six, edits: spelled("2001:db8::21"), want: []string{
			"spec.address: Invalid value: address 2001:db8::21 is not the address 2001:0db8:0000:0000:0000:0000:0000:0020 that the object is named after",
		}},
		"address is no address": {name: "10.0.0.20", edits: spelled("ten"), want: []string{
			"spec.address: Invalid value: address ten is not the address 10.0.0.20 that the object is named after",
		}},
		"address is of other family": {name: "10.0.0.20", edits: spelled("2001:db8::20"), want: []string{
			"spec.address: Invalid value: address 2001:db8::20 is not the address 10.0.0.20 that the object is named after",
		}},

		"pool missing": {name: "10.0.0.20", edits: edits{func(o *v1.BCSNetIP) { o.Spec.Pool = "" }}, want: []string{
			`spec.pool: Invalid value: "": spec.pool in body should be at least 1 chars long`,
		}},
		"mask 0": {name: "10.0.0.20", edits: edits{func(o *v1.BCSNetIP) { o.Spec.Mask = 0 }}, want: []string{
			"spec.mask: Invalid value: 0: spec.mask in body should be greater than or equal to 1",
		}},
		"IPv6 mask 128": {name: six, edits: edits{func(o *v1.BCSNetIP) { o.Spec.Mask = 128 }}},
		"gateway is no address": {name: "10.0.0.20", edits: edits{func(o *v1.BCSNetIP) { o.Spec.Gateway = "gw" }}, want: []string{
			`spec.gateway: Invalid value: "gw": ` + notAddress,
		}},

		"Active by a container": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{Status: v1.IPActive, ContainerID: "c1", Host: "10.0.0.11"})},
		"Active by an owner":    {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{Status: v1.IPActive, Owner: "vm-7", Host: "2001:db8::11"})},
		"Active by a pod":       {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{Status: v1.IPActive, PodUID: "u1", Host: "10.0.0.11"})},
		"Active by nobody": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{Status: v1.IPActive}), want: []string{
			"status.containerID: Required value: an Active address has a holder: set containerID, podUID for a pod whose container is not known, or owner for a holder that is not a pod",
		}},
		"Reserved by nobody": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{Status: v1.IPReserved})},
		"status of another word": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{Status: "active"}), want: []string{
			`status.status: Unsupported value: "active": supported values: "Available", "Active", "Reserved"`,
			unchecked,
		}},
		"host is no address": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{Host: "node-1"}), want: []string{
			`status.host: Invalid value: "node-1": ` + notHost,
		}},
		"a second attachment": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{
			Status: v1.IPActive, ContainerID: "c1", Host: "10.0.0.11",
			SecondAttachment: &v1.SecondAttachment{PodName: "vm-2", PodUID: "u2", ContainerID: "c2", IfName: "eth0", Host: "10.0.0.12"},
		})},
		"a second attachment of no container": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{
			Status: v1.IPActive, ContainerID: "c1", SecondAttachment: &v1.SecondAttachment{PodName: "vm-2"},
		}), want: []string{
			`status.secondAttachment.containerID: Invalid value: "": status.secondAttachment.containerID in body should be at least 1 chars long`,
		}},
		"a second attachment on no host": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{
			Status: v1.IPActive, ContainerID: "c1", SecondAttachment: &v1.SecondAttachment{ContainerID: "c2", Host: "node-1"},
		}), want: []string{
			`status.secondAttachment.host: Invalid value: "node-1": ` + notHost,
		}},
		"container ID is too long": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{ContainerID: strings.Repeat("c", 257)}), want: []string{
			"status.containerID: Too long: may not be more than 256 bytes",
			unchecked,
		}},
		"owner is too long": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{Owner: strings.Repeat("o", 254)}), want: []string{
			"status.owner: Too long: may not be more than 253 bytes",
			unchecked,
		}},
		"interface is too long": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{IfName: strings.Repeat("e", 16)}), want: []string{
			"status.ifName: Too long: may not be more than 15 bytes",
			unchecked,
		}},
		"what was given": {name: "10.0.0.20", edits: given(v1.GivenSettings{
			Gateway: "2001:db8::1", GatewayFrom: "Host", VLAN: 4094, MTU: 65535,
			Routes: []string{"10.8.0.0/16", "2001:db8::/32 via 2001:db8::9"}, DNS: []string{"nameserver 10.0.0.2", "search a b"},
		})},
		"nothing was given":  {name: "10.0.0.20", edits: given(v1.GivenSettings{})},
		"digests were given": {name: "10.0.0.20", edits: given(v1.GivenSettings{RoutesDigest: "0123456789abcdef", DNSDigest: "0123456789abcdef"})},
		"a gateway that is none": {name: "10.0.0.20", edits: given(v1.GivenSettings{Gateway: "gw"}), want: []string{
			`status.given.gateway: Invalid value: "gw": status.given.gateway in body should match '^[0-9a-f.:]*$'`,
		}},
		"a gateway of nobody": {name: "10.0.0.20", edits: given(v1.GivenSettings{GatewayFrom: "Router"}), want: []string{
			`status.given.gatewayFrom: Unsupported value: "Router": supported values: "Host", "Annotation"`,
			unchecked,
		}},
		"a VLAN above all": {name: "10.0.0.20", edits: given(v1.GivenSettings{VLAN: 4095}), want: []string{
			"status.given.vlan: Invalid value: 4095: status.given.vlan in body should be less than or equal to 4094",
		}},
		"an MTU below zero": {name: "10.0.0.20", edits: given(v1.GivenSettings{MTU: -1}), want: []string{
			"status.given.mtu: Invalid value: -1: status.given.mtu in body should be greater than or equal to 0",
		}},
		"a route that is none": {name: "10.0.0.20", edits: given(v1.GivenSettings{Routes: []string{"10.8.0.0"}}), want: []string{
			`status.given.routes[0]: Invalid value: "10.8.0.0": status.given.routes[0] in body should match '^[0-9a-f.:]+/[0-9]{1,3}( via [0-9a-f.:]+)?$'`,
		}},
		"too many routes": {name: "10.0.0.20", edits: given(v1.GivenSettings{Routes: slices.Repeat([]string{"::/0"}, 33)}), want: []string{
			"status.given.routes: Too many: 33: must have at most 32 items",
			unchecked,
		}},
		"a long line of DNS": {name: "10.0.0.20", edits: given(v1.GivenSettings{DNS: []string{strings.Repeat("d", 129)}}), want: []string{
			"status.given.dns[0]: Too long: may not be more than 128 bytes",
			unchecked,
		}},
		"a digest that is none": {name: "10.0.0.20", edits: given(v1.GivenSettings{DNSDigest: "0123456789ABCDEF"}), want: []string{
			`status.given.dnsDigest: Invalid value: "0123456789ABCDEF": status.given.dnsDigest in body should match '^[0-9a-f]{16}$'`,
		}},
		"given to a long name": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{GivenTo: strings.Repeat("c", 17)}), want: []string{
			"status.givenTo: Too long: may not be more than 16 bytes",
			unchecked,
		}},
		"a conflict": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{
			Status: v1.IPReserved, UpdateTime: "2026-01-02T15:04:05Z", Conflict: &v1.AddressConflict{
				MAC: "02:00:5e:10:00:01", Host: "10.0.0.11", ContainerID: "c1", ReportedAt: "2026-01-02T15:04:05Z",
				Outcome: v1.ConflictQuarantined, Until: "2026-01-02T16:04:05Z",
			},
		})},
		"a conflict of another outcome": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{Conflict: &v1.AddressConflict{
			MAC: "02:00:5e:10:00:01", ContainerID: "c1", ReportedAt: "2026-01-02T15:04:05Z", Outcome: "Disputed",
		}}), want: []string{
			`status.conflict.outcome: Unsupported value: "Disputed": supported values: "Quarantined", "Released", "Kept"`,
			unchecked,
		}},
		"a conflict without a MAC": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{Conflict: &v1.AddressConflict{
			ContainerID: "c1", ReportedAt: "2026-01-02T15:04:05Z", Outcome: v1.ConflictKept,
		}}), want: []string{
			`status.conflict.mac: Invalid value: "": status.conflict.mac in body should be at least 17 chars long`,
		}},
		"network name is too long": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{CNINetwork: strings.Repeat("n", 254)}), want: []string{
			"status.cniNetwork: Too long: may not be more than 253 bytes",
			unchecked,
		}},
		"too many former containers": {name: "10.0.0.20", edits: status(v1.BCSNetIPStatus{SupersededContainerIDs: []string{"1", "2", "3", "4", "5"}}), want: []string{
			"status.supersededContainerIDs: Too many: 5: must have at most 4 items",
			unchecked,
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := c.Create(t.Context(), address(tt.name, tt.edits...), client.DryRunAll)
			if diff := compare(t, tt.want, err); diff != "" {
				t.Error(diff)
			}
		})
	}
}

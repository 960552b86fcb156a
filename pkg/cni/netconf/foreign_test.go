package netconf

import (
	"fmt"
	"strings"
	"testing"
)

// TestFieldsOfOthers has every field that other IPAM plugins document: each is refused by its name, with the field of
// ours that is meant.
func TestFieldsOfOthers(t *testing.T) {
	for plugin, fields := range map[string]map[string]string{
		"whereabouts": {
			"range": "availableIPs", "range_start": "availableIPs", "range_end": "availableIPs", "ipRanges": "availableIPs",
			"exclude": "excludeIPs", "gateway": "gateway", "addresses": "/ip of the pod", "dns": "pool's dns",
			"network_name": `by "network"`, "enable_overlapping_ranges": "leave it out", "datastore": "leave it out",
			"etcd_host": "leave it out", "etcd_username": "leave it out", "etcd_password": "leave it out",
			"etcd_key_file": "leave it out", "etcd_cert_file": "leave it out", "etcd_ca_cert_file": "leave it out",
			"log_file": "leave it out", "log_level": "leave it out", "kubernetes": "leave it out",
			"configuration_path": "leave it out", "node_slice_size": "leave it out", "reconciler_cron_expression": "leave it out",
			"sleep_for_race": "leave it out", "leader_lease_duration": "leave it out", "leader_renew_deadline": "leave it out",
			"leader_retry_period": "leave it out", "optimistic_ipam": "leave it out", "enable_l3": "leave it out", "name": "leave it out",
		},
		"host-local": {
			"subnet": "availableIPs", "ranges": "availableIPs", "rangeStart": "availableIPs", "rangeEnd": "availableIPs",
			"gateway": "pool's gateway", "resolvConf": "pool's dns",
		},
		"static": {"addresses": "/ip of the pod", "dns": "pool's dns"},
		"dhcp": {
			"daemonSocketPath": "no DHCP server", "request": "no DHCP server", "provide": "no DHCP server", "priority": "no DHCP server",
		},
		"spiderpool": {
			"default_ipv4_ippool": "/pool of the pod", "default_ipv6_ippool": "/pool of the pod", "match_master_subnet": `by "network"`,
			"clean_gateway": "gateway", "ipam_unix_socket_path": "leave it out", "log_level": "leave it out",
			"log_file_path": "leave it out", "log_file_max_size": "leave it out", "log_file_max_age": "leave it out",
			"log_file_max_count": "leave it out",
		},
		"calico-ipam": {
			"ipv4_pools": "/pool of the pod", "ipv6_pools": "/pool of the pod", "assign_ipv4": "ipFamilies",
			"assign_ipv6": "ipFamilies", "ip_pools_label_selector_keys": `by "network"`, "subnet": "availableIPs",
		},
		"kube-ovn": {"provider": `by "network"`, "server_socket": "leave it out"},
		"nv-ipam":  {"poolName": "/pool of the pod", "poolType": `by "network"`, "daemonSocket": "leave it out"},
		"mistyped": {
			"networks": `"network" is meant`, "Network": `"network" is meant`, "ip_families": `"ipFamilies" is meant`,
			"ipFamilyPolcy": `"ipFamilyPolicy" is meant`, "route": `"routes" is meant`, "disable-gc": `"disableGC" is meant`,
			"hosts": `"host" is meant`, "something": "there are type, host",
		},
	} {
		for field, want := range fields {
			for where, text := range map[string]string{
				"ipam.": `{"ipam":{"type":"bcsnet-ipam",%q:["x"]}}`, "": `{"type":"bcsnet-ipam",%q:["x"]}`,
			} {
				if where == "" && isCNIs(field) {
					continue
				}
				c, err := Parse(fmt.Appendf(nil, text, field), "")
				if err != nil || len(c.Unknown) != 1 {
					t.Errorf("%s, %s: %v, unknown: %v", plugin, field, err, c.Unknown)
					continue
				}
				if err := c.Followed(); !strings.HasPrefix(err.Error(), where+field+": ") || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", plugin, err, want)
				}
			}
		}
	}
}

// TestFieldsOfCNI has what CNI and runtimes put beside our fields where no main plugin calls.
func TestFieldsOfCNI(t *testing.T) {
	c, err := Parse([]byte(`{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-ipam","args":{"cni":{}},"capabilities":{"ips":true},
		"runtimeConfig":{"ips":[]},"prevResult":{},"dns":{},"cni.dev/valid-attachments":[],"disableCheck":true,"network":"blue"}`), "")
	if err != nil || c.Followed() != nil || len(c.Former) > 0 {
		t.Errorf("%v, %v, %v", err, c.Followed(), c.Former)
	}
}

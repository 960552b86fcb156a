package netconf

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ownFields returns the names of the fields of the section ipam.
func ownFields() []string {
	return []string{
		"type", "host", "network", "ipFamilyPolicy", "ipFamilies", "routes", "probe", "disableGC", "statusFails",
		"netserviceEndpoint", "logDir",
	}
}

// formerFields returns the fields that earlier releases used. Their values are now root's choice: the author of a
// NetworkAttachmentDefinition must not set them.
func formerFields() []string {
	return []string{"cluster", "serverName", "configDir", "dataDir", "runDir"}
}

// isCNIs reports whether a field belongs to CNI itself. Such fields stand beside ours if no main plugin calls.
func isCNIs(name string) bool {
	return strings.HasPrefix(name, "cni.dev/") || slices.Contains([]string{
		"cniVersion", "cniVersions", "name", "type", "args", "capabilities", "runtimeConfig", "prevResult", "dns",
		"ipMasq", "disableCheck", "loadOnlyInlinedPlugins",
	}, name)
}

// parseUnfollowed records the fields of our section that the plugin cannot follow. beside reports further allowed
// names.
func (c *Conflist) parseUnfollowed(o object, beside func(name string) bool) {
	for name := range o.fields {
		switch {
		case slices.Contains(ownFields(), name), beside(name):
		case slices.Contains(formerFields(), name):
			c.Former = append(c.Former, o.path+name)
		default:
			c.Unknown = append(c.Unknown, &Problem{o.path + clip(name), "bcsnet-ipam has no such field: " +
				meant(name)})
		}
	}
	slices.Sort(c.Former)
	slices.SortFunc(c.Unknown, func(a, b *Problem) int { return cmp.Compare(a.Field, b.Field) })
}

// Followed returns an error that names all fields that the plugin does not have; nil if there are none.
func (c *Conflist) Followed() error {
	errs := make([]error, 0, len(c.Unknown))
	for _, p := range c.Unknown {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

// Our fields that correspond to fields of other plugins.
const (
	meansAddresses = "write a pool whose availableIPs has these addresses, with a spec.network, and name that by " +
		"\"network\""
	meansExcluded = "write these addresses into excludeIPs of the pool"
	meansPool     = "name the pool's spec.network by \"network\", or the pool by the annotation " +
		"networkextension.bkbcs.tencent.com/pool of the pod"
	meansGateway  = "write it into the pool's gateway"
	meansAddress  = "ask for one address by the annotation networkextension.bkbcs.tencent.com/ip of the pod"
	meansFamilies = "say by \"ipFamilies\" and \"ipFamilyPolicy\" of which families addresses are taken"
	meansDNS      = "write it into the pool's dns, or beside \"ipam\""
	meansDHCP     = "bcsnet asks no DHCP server: write a pool, and name its spec.network by \"network\""
	meansNothing  = "leave it out: nothing takes its place, the allocator keeps the leases, and the log is calls.log"
)

// meant returns our field that corresponds to an unknown field.
func meant(name string) string {
	for text, names := range map[string][]string{
		// whereabouts; host-local; galaxy
		meansAddresses: {
			"range", "range_start", "range_end", "ipRanges", "subnet", "ranges", "rangeStart", "rangeEnd",
			"request_ip_range",
		},
		meansExcluded: {"exclude", "excludes", "excludeIPs"},
		// spiderpool; calico-ipam; nv-ipam; kube-ovn; whereabouts
		meansPool: {
			"default_ipv4_ippool", "default_ipv6_ippool", "default_cluster_ipv4_ippool", "default_cluster_ipv6_ippool",
			"ipv4_pools", "ipv6_pools", "ip_pools_label_selector_keys", "match_master_subnet", "poolName", "poolType",
			"pool", "pools", "ippool", "provider", "network_name", "includeNetwork",
		},
		meansGateway:  {"gateway", "gateways", "clean_gateway", "hostGateway"},
		meansAddress:  {"addresses", "address", "ips", "ip", "ipAddr"},
		meansFamilies: {"assign_ipv4", "assign_ipv6", "enable_ipv4", "enable_ipv6"},
		meansDNS:      {"dns", "resolvConf"},
		meansDHCP:     {"daemonSocketPath", "request", "provide", "priority"},
		meansNothing: {
			"name", "datastore", "etcd_host", "etcd_username", "etcd_password", "etcd_key_file", "etcd_cert_file",
			"etcd_ca_cert_file", "log_file", "log_level", "log_file_path", "log_file_max_size", "log_file_max_age",
			"log_file_max_count", "logFile", "logLevel", "enable_overlapping_ranges", "optimistic_ipam", "enable_l3",
			"kubernetes", "configuration_path", "node_slice_size", "reconciler_cron_expression", "sleep_for_race",
			"leader_lease_duration", "leader_renew_deadline", "leader_retry_period", "ipam_unix_socket_path",
			"server_socket", "daemonSocket", "daemonCallTimeoutSeconds", "confDir",
		},
	} {
		if slices.Contains(names, name) {
			return text
		}
	}
	if own := nearest(name); own != "" {
		return fmt.Sprintf("%q is meant", own)
	}
	return fmt.Sprintf("leave it out, or write it right: there are %s", strings.Join(ownFields(), ", "))
}

// nearest returns our field that a name may misspell; empty if there is none.
func nearest(name string) string {
	const most = 2 // letters
	best, fewest := "", most+1
	for _, own := range ownFields() {
		if n := distance(plain(name), plain(own)); n < fewest && n < len(own)/2 {
			best, fewest = own, n
		}
	}
	return best
}

// plain returns a name for comparison: other plugins use other case, and _ or - between words.
func plain(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(clip(name)))
}

// distance returns the number of letters to change, add or remove to turn one word into another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}

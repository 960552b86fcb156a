package netconf

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
)

// Type is the name of the plugin, by which main plugins find it.
const Type = "bcsnet-ipam"

// Values of statusFails.
const (
	// StatusAllocator makes STATUS fail while no replica answers.
	StatusAllocator = "allocator"
	// StatusPools makes STATUS fail after an ADD was refused because the pools are full.
	StatusPools = "pools"
)

// Conflist is the runtime's input: the network configuration of one plugin, and CNI_ARGS.
type Conflist struct {
	// CNIVersion and Name come from the network configuration.
	CNIVersion, Name string
	// Pod identifies the container's pod.
	Pod Pod

	// Host is the node's address as listed in pools; the zero Addr if config.json names it.
	Host netip.Addr
	// Replicas are the allocator's URLs in the released plugin's field netserviceEndpoint. They are used only if the
	// node's config.json names none.
	Replicas []*url.URL

	// Network selects pools with this spec.network; empty for the pools of the namespace.
	Network string
	// FamilyPolicy and Families select the address families, as in a Service.
	FamilyPolicy string
	Families     []string
	// Routes come before the routes of the pool.
	Routes []Route
	// Wish has the requests of the pod itself.
	Wish Wish
	// VLAN is the VLAN that the main plugin puts the interface into.
	VLAN VLAN
	// Probe makes an ADD ask the network, before it answers, whether another machine has the address.
	Probe bool
	// DisableGC makes GC do nothing.
	DisableGC bool
	// StatusFails lists further conditions that make STATUS fail: StatusAllocator, StatusPools.
	StatusFails []string

	// PrevResult is the result of the ADD, as passed to CHECK; nil without one.
	PrevResult json.RawMessage
	// Valid is the list of a GC; nil without one.
	Valid []Attachment
	// Unknown are the fields of ipam that the plugin does not have, with the fields to use instead.
	Unknown []*Problem
	// Former are the fields that earlier releases used and this release ignores.
	Former []string
}

// Parse parses a network configuration and CNI_ARGS. The error is ErrNoObject, or joins a Problem for each invalid
// field. In that case the Conflist still contains the valid fields.
func Parse(text []byte, args string) (c Conflist, err error) {
	var p problems
	top, err := newObject("", text, &p)
	if err != nil {
		return c, err
	}
	var asked argsWish
	c.Pod, asked = parseArgs(args, &p)
	c.CNIVersion, c.Name = read[string](top, "cniVersion"), read[string](top, "name")
	c.DisableGC = read[bool](top, "disableGC")
	c.VLAN = parseVLAN(top)
	c.Wish = parseWish(top, asked)
	if raw := top.fields["prevResult"]; string(raw) != "null" {
		c.PrevResult = raw
	}
	c.Valid = parseValid(top)
	own, beside := top.inner("ipam"), func(string) bool { return false }
	if !top.has("ipam") && read[string](top, "type") == Type { // called without a main plugin: the whole object is ours
		own, beside = object{fields: top.fields, problems: &p}, isCNIs
	}
	c.parseOwn(own)
	c.parseUnfollowed(own, beside)
	return c, p.err()
}

func (c *Conflist) parseOwn(o object) {
	c.Host = parseHost(o, "host")
	c.Replicas = parseEndpoints(o, "netserviceEndpoint")
	c.Network = readName(o, "network")
	c.FamilyPolicy = read[string](o, "ipFamilyPolicy")
	checkWord(o, "ipFamilyPolicy", c.FamilyPolicy, "SingleStack", "PreferDualStack", "RequireDualStack")
	c.Families = read[[]string](o, "ipFamilies")
	for i, f := range c.Families {
		checkWord(o, fmt.Sprintf("ipFamilies[%d]", i), f, "IPv4", "IPv6")
	}
	if once := slices.Compact(slices.Sorted(slices.Values(c.Families))); len(once) < len(c.Families) {
		o.problems.add(o.path+"ipFamilies", "it names a family twice")
	}
	c.Routes = parseRoutes(o)
	c.Probe = read[bool](o, "probe")
	c.DisableGC = c.DisableGC || read[bool](o, "disableGC")
	c.StatusFails = read[[]string](o, "statusFails")
	for i, w := range c.StatusFails {
		checkWord(o, fmt.Sprintf("statusFails[%d]", i), w, StatusAllocator, StatusPools)
	}
}

// maxName bounds names, with the allocator's limit.
const maxName = 253

func readName(o object, name string) string {
	v := read[string](o, name)
	if len(v) > maxName {
		o.problems.add(o.path+name, "it is longer than %d bytes", maxName)
		return ""
	}
	return v
}

// readDir returns a directory, which must be an absolute path: a relative one would depend on the runtime's working
// directory.
func readDir(o object, name string) string {
	v := read[string](o, name)
	if v != "" && !filepath.IsAbs(v) {
		o.problems.add(o.path+name, "%q is not an absolute path", clip(v))
		return ""
	}
	return v
}

func checkWord(o object, name, word string, words ...string) {
	if word != "" && !slices.Contains(words, word) {
		o.problems.add(o.path+name, "%q is none of %v", clip(word), words)
	}
}

func parseHost(o object, name string) netip.Addr {
	v := read[string](o, name)
	if v == "" {
		return netip.Addr{}
	}
	host, err := netip.ParseAddr(v)
	if err != nil || host.IsUnspecified() || host.IsMulticast() || host.Zone() != "" {
		o.problems.add(o.path+name, "%q is not the IP address of a host", clip(v))
		return netip.Addr{}
	}
	return host.Unmap()
}

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

// Words of statusFails.
const (
	// StatusAllocator has STATUS fail while no replica answers.
	StatusAllocator = "allocator"
	// StatusPools has STATUS fail after an ADD was refused because the pools are full.
	StatusPools = "pools"
)

// Conflist is what the runtime says: the network configuration of one plugin, and CNI_ARGS.
type Conflist struct {
	// CNIVersion and Name are those of the network configuration.
	CNIVersion, Name string
	// Pod is who the container belongs to.
	Pod Pod

	// Host is the address that pools list the node by; the zero Addr where config.json says it.
	Host netip.Addr
	// Replicas are the URLs of the allocator that the released plugin's field netserviceEndpoint has. They count on a
	// node whose config.json names none.
	Replicas []*url.URL

	// Network asks for pools with this spec.network; empty for the pools of the namespace.
	Network string
	// FamilyPolicy and Families say of which families addresses are taken, as in a Service.
	FamilyPolicy string
	Families     []string
	// Routes come before those of the pool.
	Routes []Route
	// Wish is what the pod asks for itself.
	Wish Wish
	// VLAN is the VLAN that the main plugin puts the interface into.
	VLAN VLAN
	// Probe has the network asked, before an ADD answers, whether somebody has the address.
	Probe bool
	// DisableGC has GC do nothing.
	DisableGC bool
	// StatusFails has STATUS fail by more than the configuration: StatusAllocator, StatusPools.
	StatusFails []string

	// PrevResult is the result of the ADD, as CHECK gets it; nil without one.
	PrevResult json.RawMessage
	// Valid is the list of a GC; nil without one.
	Valid []Attachment
	// Unknown are the fields of ipam that the plugin does not have, with the ones that are meant.
	Unknown []*Problem
	// Former are the fields that earlier releases took and this one leaves alone.
	Former []string
}

// Parse reads a network configuration and CNI_ARGS. Its error joins a Problem for each field that is wrong, and the
// others are in the Conflist all the same; or it is ErrNoObject.
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
	if !top.has("ipam") && read[string](top, "type") == Type { // called without a main plugin: all of it is ours
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

// maxName bounds names, as the allocator does.
const maxName = 253

func readName(o object, name string) string {
	v := read[string](o, name)
	if len(v) > maxName {
		o.problems.add(o.path+name, "it is longer than %d bytes", maxName)
		return ""
	}
	return v
}

// readDir returns a directory. A relative one would be relative to wherever the runtime is.
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

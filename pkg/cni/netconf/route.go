package netconf

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// maxRoutes bounds the routes of a configuration.
const maxRoutes = 1024

// Route is a route of the CNI specification.
type Route struct {
	Dst netip.Prefix
	// GW is the gateway; the zero Addr for the gateway of the address.
	GW netip.Addr
	// MTU, AdvMSS and Priority are 0 if the kernel chooses.
	MTU, AdvMSS, Priority int
	// Table and Scope are nil if the main plugin chooses.
	Table, Scope *int
}

// parseRoutes parses the routes, each in the form of the CNI specification.
func parseRoutes(o object) (all []Route) {
	texts := read[[]json.RawMessage](o, "routes")
	if len(texts) > maxRoutes {
		o.problems.add(o.path+"routes", "%d routes are more than %d", len(texts), maxRoutes)
		return nil
	}
	for i, text := range texts {
		path := fmt.Sprintf("%sroutes[%d]", o.path, i)
		r, err := newObject(path+".", text, o.problems)
		if err != nil {
			o.problems.add(path, "%s is not an object", clip(string(text)))
			continue
		}
		route, ok := parseRoute(r)
		if ok {
			all = append(all, route)
		}
	}
	return all
}

func parseRoute(o object) (Route, bool) {
	before := len(o.problems.all)
	r := Route{
		MTU: read[int](o, "mtu"), AdvMSS: read[int](o, "advmss"), Priority: read[int](o, "priority"),
		Table: read[*int](o, "table"), Scope: read[*int](o, "scope"),
	}
	dst := read[string](o, "dst")
	prefix, err := netip.ParsePrefix(dst)
	if err != nil {
		o.problems.add(o.path+"dst", "%q is not a network, such as 0.0.0.0/0", clip(dst))
	}
	r.Dst = prefix.Masked()
	if gw := read[string](o, "gw"); gw != "" {
		addr, err := netip.ParseAddr(gw)
		if err != nil || addr.Zone() != "" {
			o.problems.add(o.path+"gw", "%q is not an IP address", clip(gw))
		} else if addr.Unmap().Is4() != prefix.Addr().Is4() && prefix.IsValid() {
			o.problems.add(o.path+"gw", "%s is of another family than %s", addr, prefix)
		}
		r.GW = addr.Unmap()
	}
	for name, v := range map[string]int{"mtu": r.MTU, "advmss": r.AdvMSS, "priority": r.Priority} {
		if v < 0 {
			o.problems.add(o.path+name, "%d is below 0", v)
		}
	}
	return r, len(o.problems.all) == before
}

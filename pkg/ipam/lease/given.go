package lease

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unique"

	"github.com/cespare/xxhash/v2"
)

// Given is what the answer to a holder's container said beside the address: its Settings as text, which is the same for
// the same settings. It is empty if they are not known. The container runs with them, whatever the pool says later.
type Given string

// GivenFields has the fields of a Given in the form that objects store.
type GivenFields struct {
	Gateway     string `json:"gateway,omitempty"`
	GatewayFrom string `json:"gatewayFrom,omitempty"`
	VLAN        int32  `json:"vlan,omitempty"`
	MTU         int32  `json:"mtu,omitempty"`
	// Routes are written as "DST" or "DST via GW", DNS as the lines of a resolv.conf. A digest stands for a list that
	// takes more than maxList.
	Routes       []string `json:"routes,omitempty"`
	RoutesDigest string   `json:"routesDigest,omitempty"`
	DNS          []string `json:"dns,omitempty"`
	DNSDigest    string   `json:"dnsDigest,omitempty"`
}

// maxList bounds the routes, and the DNS, of one lease, in bytes of JSON: all that was given takes less than 400 bytes.
const maxList = 120

// NewGiven returns the text of settings.
func NewGiven(s Settings) Given { return GivenOf(s.fields()) }

// GivenOf returns the text of fields as an object has them. What cannot be read of them stays as it is. All leases with
// the same text share it.
func GivenOf(f GivenFields) Given {
	text, _ := json.Marshal(f) // cannot fail
	return unique.Make(Given(text)).Value()
}

// Fields returns the fields of the text; ok is false if they are not known.
func (g Given) Fields() (f GivenFields, ok bool) {
	return f, g != "" && json.Unmarshal([]byte(g), &f) == nil
}

// Known reports whether it is known what was given.
func (g Given) Known() bool {
	_, ok := g.Settings(Settings{})
	return ok
}

// Settings returns what was given; ok is false if that is not known. now is what would be given now: it has the list
// that a digest stands for, or the nearest to it that is known.
func (g Given) Settings(now Settings) (s Settings, ok bool) {
	f, ok := g.Fields()
	if !ok {
		return s, false
	}
	s.GatewayFrom, s.VLAN, s.MTU = GatewaySource(f.GatewayFrom), int(f.VLAN), int(f.MTU)
	if f.Gateway != "" {
		if s.Gateway, ok = parseAddr(f.Gateway); !ok {
			return Settings{}, false
		}
	}
	if s.Routes = now.Routes; f.RoutesDigest == "" {
		if s.Routes, ok = parseRoutes(f.Routes); !ok {
			return Settings{}, false
		}
	}
	if s.DNS = now.DNS; f.DNSDigest == "" {
		s.DNS = parseDNS(f.DNS)
	}
	return s, true
}

// Differs returns the names of the settings in which what was given is not what the pool of the lease says now; none
// if it is not known what was given. A gateway that a host or an annotation named is not the pool's to change.
func (g Given) Differs(now Settings) []string {
	if _, ok := g.Settings(now); !ok {
		return nil
	}
	was, _ := g.Fields()
	is := now.fields()
	switch GatewaySource(was.GatewayFrom) {
	case FromPool:
	case FromHost: // it replaces one of the pool, and there is none if the pool has none
		if is.Gateway != "" {
			is.Gateway = was.Gateway
		}
	default:
		is.Gateway = was.Gateway
	}
	return was.differ(is)
}

// differ returns the names of the settings that are not the same.
func (f GivenFields) differ(o GivenFields) (names []string) {
	for i, same := range []bool{
		f.Gateway == o.Gateway, f.VLAN == o.VLAN, f.MTU == o.MTU,
		f.RoutesDigest == o.RoutesDigest && slices.Equal(f.Routes, o.Routes),
		f.DNSDigest == o.DNSDigest && slices.Equal(f.DNS, o.DNS),
	} {
		if !same {
			names = append(names, SettingNames()[i])
		}
	}
	return names
}

func (s Settings) fields() GivenFields {
	f := GivenFields{GatewayFrom: string(s.GatewayFrom), VLAN: int32(s.VLAN), MTU: int32(s.MTU)}
	if s.Gateway.IsValid() {
		f.Gateway = s.Gateway.String()
	}
	f.Routes, f.RoutesDigest = short(s.RouteLines())
	f.DNS, f.DNSDigest = short(s.DNSLines())
	return f
}

// short returns a list, or its digest if it is too long.
func short(list []string) (same []string, digest string) {
	text, _ := json.Marshal(list) // cannot fail
	if len(text) <= maxList {
		return list, ""
	}
	return nil, fmt.Sprintf("%016x", xxhash.Sum64(text))
}

// RouteLines returns the routes as text: "10.8.0.0/16 via 10.0.0.9", without via for those by the gateway.
func (l Link) RouteLines() (lines []string) {
	for _, r := range l.Routes {
		line := r.Dst.String()
		if r.GW.IsValid() {
			line += " via " + r.GW.String()
		}
		lines = append(lines, line)
	}
	return lines
}

func parseRoutes(lines []string) (routes []Route, ok bool) {
	for _, line := range lines {
		dst, gw, via := strings.Cut(line, " via ")
		var r Route
		var err error
		if r.Dst, err = netip.ParsePrefix(dst); err != nil {
			return nil, false
		}
		if via {
			if r.GW, ok = parseAddr(gw); !ok {
				return nil, false
			}
		}
		routes = append(routes, r)
	}
	return routes, true
}

// Words that begin the lines of a resolv.conf.
const (
	nameserver = "nameserver "
	domain     = "domain "
	search     = "search "
	options    = "options "
)

// DNSLines returns the resolver configuration as the lines of a resolv.conf, each with one value.
func (l Link) DNSLines() (lines []string) {
	if l.DNS == nil {
		return nil
	}
	add := func(word string, values ...string) {
		for _, v := range values {
			if v != "" {
				lines = append(lines, word+v)
			}
		}
	}
	add(nameserver, l.DNS.Nameservers...)
	add(domain, l.DNS.Domain)
	add(search, l.DNS.Search...)
	add(options, l.DNS.Options...)
	return lines
}

// parseDNS reads what DNSLines wrote; a line of another word says nothing.
func parseDNS(lines []string) *DNS {
	if len(lines) == 0 {
		return nil
	}
	d := &DNS{}
	for _, line := range lines {
		if v, is := strings.CutPrefix(line, nameserver); is {
			d.Nameservers = append(d.Nameservers, v)
		} else if v, is := strings.CutPrefix(line, domain); is {
			d.Domain = v
		} else if v, is := strings.CutPrefix(line, search); is {
			d.Search = append(d.Search, v)
		} else if v, is := strings.CutPrefix(line, options); is {
			d.Options = append(d.Options, v)
		}
	}
	return d
}

func parseAddr(s string) (a netip.Addr, ok bool) {
	a, err := netip.ParseAddr(s)
	return a, err == nil && a.Zone() == ""
}

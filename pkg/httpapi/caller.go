package httpapi

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Caller is the sender of a request.
type Caller struct {
	// Name is the name for the log and for the history of addresses.
	Name string
	// Hosts are the hosts for which the caller may act; nil for all.
	Hosts []netip.Addr
}

// mayAsk reports whether a caller's hosts allow a request about a subject.
func (c Caller) mayAsk(by scope, of subject) bool {
	if c.Hosts == nil || by == byLease {
		return true
	}
	host, err := parseHost(of.Host)
	return by == byHost && err == nil && slices.Contains(c.Hosts, host)
}

// hosts returns the hosts of a caller for messages.
func (c Caller) hosts() string {
	if len(c.Hosts) == 0 {
		return "not known"
	}
	all := make([]string, 0, len(c.Hosts))
	for _, host := range c.Hosts {
		all = append(all, host.String())
	}
	return strings.Join(all, ", ")
}

// writeTo writes a caller into the headers of a request to another replica.
func (c Caller) writeTo(h http.Header) {
	if c.Name != "" {
		h.Set(headerUser, c.Name)
	}
	if c.Hosts == nil {
		return
	}
	hosts := make([]string, 0, len(c.Hosts))
	for _, host := range c.Hosts {
		hosts = append(hosts, host.String())
	}
	h.Set(headerHosts, strings.Join(hosts, ","))
}

// toldCaller returns the caller in the headers of another replica. Invalid hosts are ignored.
func toldCaller(h http.Header) Caller {
	c := Caller{Name: h.Get(headerUser)}
	if _, restricted := h[headerHosts]; !restricted {
		return c
	}
	c.Hosts = []netip.Addr{}
	for host := range strings.SplitSeq(h.Get(headerHosts), ",") {
		if a, err := netip.ParseAddr(host); err == nil {
			c.Hosts = append(c.Hosts, a)
		}
	}
	return c
}

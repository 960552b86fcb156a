package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// isLocal reports whether a request was sent on this machine: both ends of its connection are loopback addresses, or it
// came over no network at all. Requests through a proxy on this machine are not local. Requests that name another
// machine are not local, either: a web page can make a browser send them, by a name that resolves to a loopback
// address.
func isLocal(r *http.Request) bool {
	source, ok := sourceOf(r)
	if !ok {
		return true
	}
	if here, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if at, err := netip.ParseAddrPort(here.String()); err != nil || !at.Addr().Unmap().IsLoopback() {
			return false
		}
	}
	return source.IsLoopback() && !isProxied(r.Header) && namesLoopback(r.Host)
}

// isProxied reports whether the headers show that a proxy forwarded the request.
func isProxied(h http.Header) bool {
	for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if _, ok := h[name]; ok {
			return true
		}
	}
	return false
}

// namesLoopback reports whether the name by which a request calls the server means the own machine on any machine: a
// loopback address, localhost, or none. Name servers are not asked about these names, so a web page cannot make them
// resolve to this machine. A client that means another machine uses none of them, so a request with the machine's own
// address came through a proxy.
func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "" || strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.Unmap().IsLoopback()
}

// sourceOf returns the source address of a request; false if it came over no network.
func sourceOf(r *http.Request) (netip.Addr, bool) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr().Unmap().WithZone(""), err == nil
}

func caller(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

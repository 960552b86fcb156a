package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// isLocal reports whether a request was sent on this machine: both ends of its connection are loopback addresses, or it
// came over no network at all. What a proxy of this machine passes on is somebody else's, and so is what names another
// machine: a web page whose name leads to a loopback address can have a browser send that.
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

// isProxied reports whether a proxy says that it passes a request on.
func isProxied(h http.Header) bool {
	for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if _, ok := h[name]; ok {
			return true
		}
	}
	return false
}

// namesLoopback reports whether the name by which a request calls the server is this machine's on any machine: a
// loopback address, localhost, or none. A name server is asked about none of them, so no page of a browser can have
// them lead here, and who means another machine uses none of them: the machine's own address came through a proxy.
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

// sourceOf returns the address that a request came from; false where it came over no network.
func sourceOf(r *http.Request) (netip.Addr, bool) {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr().Unmap().WithZone(""), err == nil
}

// caller returns the IP that a request came from.
func caller(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

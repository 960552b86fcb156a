package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Headers between replicas. Clients may send the timeout of a request, and see which replica answered.
const (
	headerAnsweredBy = "Bcsnet-Answered-By"
	headerTimeout    = "Bcsnet-Timeout-Ms"
	// headerForwarded names the replica that forwarded the request, which is not forwarded again.
	headerForwarded = "Bcsnet-Forwarded"
	// headerArrived is the time at which the request reached the first replica, by the API server's clock.
	headerArrived = "Bcsnet-Arrived"
	// headerReason is the reason of an answer with HTTP status 503, for clients that ignore its body.
	headerReason = "Bcsnet-Reason"
	// headerCaller is the IP address of the client of the first replica.
	headerCaller = "Bcsnet-Caller"
	// headerUser is the identity of the first replica's client. headerHosts are the hosts for which the client may act,
	// separated by commas; absent for all.
	headerUser, headerHosts = "Bcsnet-User", "Bcsnet-Hosts"
	// headerProof is a proof that only the named replica can write; the headers before it are valid only with it.
	headerProof = "Bcsnet-Proof"
)

// forwarding is a replica's knowledge of a request apart from its own data: origin and time of arrival.
type forwarding struct {
	// from is the replica that forwarded the request, by the request's claim; empty if a client sent it.
	from string
	// arrived is the time at which the request reached the first replica. If another replica sent it, it is neither in
	// the future nor longer ago than a request may take. It is zero before arrive.
	arrived time.Time
	// socketAge is the minimum time between the request's arrival at this replica and its reading.
	socketAge time.Duration
	// caller is the IP address of the client.
	caller string
	// by is the client's identity.
	by Caller
	// namespace is the only namespace that a client without hosts may know about; empty for all.
	namespace string
}

// reader returns which holders of addresses the client may see.
func (f forwarding) reader() ipam.Reader {
	return ipam.Reader{Hosts: f.by.Hosts, Namespace: f.namespace}
}

// author returns the caller and its address, for the history of addresses.
func (f forwarding) author() string {
	if f.by.Name == "" {
		return "HTTP from " + f.caller
	}
	return f.by.Name + " from " + f.caller
}

// readForwarding returns the origin of a request as known before its body is read. Claims of other replicas must be
// proven first.
func readForwarding(r *http.Request) forwarding {
	return forwarding{from: r.Header.Get(headerForwarded), caller: caller(r)}
}

// readTimeout returns the time limit of a request: the client's, if that is shorter.
func readTimeout(r *http.Request) (time.Duration, error) {
	v := r.Header.Get(headerTimeout)
	if v == "" {
		return allocator.MaxRequestTime, nil
	}
	ms, err := strconv.ParseUint(v, 10, 31)
	if err != nil || ms == 0 {
		return allocator.MaxRequestTime, ipam.Refuse(ipam.ReasonBadRequest,
			"header %s: %q is not a number of milliseconds above zero", headerTimeout, clip(v))
	}
	return min(time.Duration(ms)*time.Millisecond, allocator.MaxRequestTime), nil
}

// prove signs a request that a replica forwards, with the secret that only the two replicas share. The signature covers
// everything that the receiver uses, so that no part of it is valid for another request.
func prove(secret []byte, from, to, method, uri string, h http.Header, body [sha256.Size]byte) string {
	mac := hmac.New(sha256.New, secret)
	for _, part := range []string{
		from, to, method, uri, h.Get(headerArrived), h.Get(headerCaller), h.Get(headerTimeout), h.Get("X-Request-Id"),
		h.Get(headerUser), strings.Join(h[headerHosts], ";"), strconv.Itoa(len(h[headerHosts])),
	} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		mac.Write(length[:])
		mac.Write([]byte(part))
	}
	mac.Write(body[:])
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

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

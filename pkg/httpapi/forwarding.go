package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Headers between replicas. Clients may send the time that they give a request, and see who answered.
const (
	headerAnsweredBy = "Bcsnet-Answered-By"
	headerTimeout    = "Bcsnet-Timeout-Ms"
	// headerForwarded names the replica that forwarded the request: it goes no further.
	headerForwarded = "Bcsnet-Forwarded"
	// headerArrived is when the request reached the first replica, by the API server's time.
	headerArrived = "Bcsnet-Arrived"
	// headerReason is the reason of an answer with HTTP status 503: whoever drops its body decides on that.
	headerReason = "Bcsnet-Reason"
	// headerCaller is the IP address of the client of the first replica.
	headerCaller = "Bcsnet-Caller"
	// headerUser is who the client of the first replica is. headerHosts are the hosts that the client acts for, with
	// commas between; absent for all.
	headerUser, headerHosts = "Bcsnet-User", "Bcsnet-Hosts"
	// headerProof is what only the replica of that name can write; the headers before it count with it alone.
	headerProof = "Bcsnet-Proof"
)

// forwarding holds where a request came from, and when: what a replica knows of it beside what the request says.
type forwarding struct {
	// from is the replica that the request says to come from; empty when a client sent it.
	from string
	// arrived is when it reached the first replica, neither in the future nor longer ago than a request may take where
	// another one says so; zero before arrive.
	arrived time.Time
	// socketAge is how long ago at least the request reached this replica when it was read.
	socketAge time.Duration
	// caller is the IP address of the client.
	caller string
	// by is who the client is.
	by Caller
	// namespace is the one that a client on no host may know of; empty for all.
	namespace string
}

// reader returns what the client may know of the holders of addresses.
func (f forwarding) reader() ipam.Reader {
	return ipam.Reader{Hosts: f.by.Hosts, Namespace: f.namespace}
}

// author returns who changes something, and from where, for the history of addresses.
func (f forwarding) author() string {
	if f.by.Name == "" {
		return "HTTP from " + f.caller
	}
	return f.by.Name + " from " + f.caller
}

// readForwarding returns what is known of a request before its body. What other replicas say of it has to be proven
// first.
func readForwarding(r *http.Request) forwarding {
	return forwarding{from: r.Header.Get(headerForwarded), caller: caller(r)}
}

// readTimeout returns how long a request may take: the client's time, if that is the shorter one.
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

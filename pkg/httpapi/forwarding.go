package httpapi

import (
	"context"
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
	// headerProof is what only the replica of that name can write; the two headers before it count with it alone.
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
}

type forwardingKey struct{}

func forwardingOf(r *http.Request) forwarding {
	f, _ := r.Context().Value(forwardingKey{}).(forwarding)
	return f
}

func (f forwarding) on(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), forwardingKey{}, f))
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

package httpapi

import (
	"context"
	"net/http"
	"net/netip"
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
)

// hop is what a replica knows of a request beside what the request says.
type hop struct {
	// from is the replica that forwarded the request; empty when a client sent it.
	from string
	// arrived is when it reached the first replica; zero when it has not been forwarded or tried to.
	arrived time.Time
	// caller is the IP address of the client.
	caller string
}

type hopKey struct{}

func hopOf(r *http.Request) hop {
	h, _ := r.Context().Value(hopKey{}).(hop)
	return h
}

func (h hop) on(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), hopKey{}, h))
}

// readHop reads the headers of a request. What only replicas send counts only with the name of one, and what cannot
// be read counts as not sent: the request is then as new as its arrival here.
func readHop(r *http.Request) hop {
	h := hop{from: r.Header.Get(headerForwarded), caller: caller(r)}
	if h.from == "" {
		return h
	}
	if t, err := parseStarted(r.Header.Get(headerArrived)); err == nil {
		h.arrived = t
	}
	if a, err := netip.ParseAddr(r.Header.Get(headerCaller)); err == nil {
		h.caller = a.String()
	}
	return h
}

// readTimeout is how long a request may take: the client's time, if that is the shorter one.
func readTimeout(r *http.Request) (time.Duration, error) {
	v := r.Header.Get(headerTimeout)
	if v == "" {
		return allocator.MaxRequestTime, nil
	}
	ms, err := strconv.ParseUint(v, 10, 31)
	if err != nil || ms == 0 {
		return allocator.MaxRequestTime, ipam.Refuse(ipam.ReasonBadRequest, "header %s: %q is not a number of milliseconds above zero", headerTimeout, clip(v))
	}
	return min(time.Duration(ms)*time.Millisecond, allocator.MaxRequestTime), nil
}

package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/http"
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// checkArrival records when a request arrived, and from where. Whichever replica answers, an ADD counts from its first
// arrival: a DEL that reached another replica later is newer. A client's request arrives when it reaches this machine:
// a replica that was stopped may read it long after its container is gone. For a forwarded request, the other replica
// sends the time, and must prove that it is a replica. Without proof, the request is refused with a status after which
// a replica of an earlier release answers by itself.
func (c *callers) checkArrival(r *http.Request, body []byte) error {
	h, now := &callOf(r).forwarding, c.now()
	h.socketAge = socketAge(r)
	if h.from == "" {
		h.arrived = now.Add(-h.socketAge)
		return nil
	}
	if err := c.fromPeer(r, h.from); err != nil {
		return err
	}
	secret := c.peers.Secret(h.from)
	want := prove(secret, h.from, c.peers.Self().ID(), r.Method, r.RequestURI, r.Header, sha256.Sum256(body))
	if (secret == nil || !hmac.Equal([]byte(want), []byte(r.Header.Get(headerProof)))) && !failpoint.Broken("proof") {
		return ipam.Refuse(ipam.ReasonUnavailable, "the request does not prove that replica %q forwarded it",
			clip(h.from)).
			WithHint("a client sends no %s", headerForwarded)
	}
	arrived, err := parseStarted(r.Header.Get(headerArrived))
	if err != nil || now.Sub(arrived) > allocator.MaxRequestTime {
		return ipam.Refuse(ipam.ReasonUnavailable, "the request has been on its way for longer than %s",
			allocator.MaxRequestTime).WithHint("ask again")
	}
	if h.arrived = arrived; arrived.After(now) { // the clocks of two replicas differ by up to a second or so
		h.arrived = now
	}
	if a, err := netip.ParseAddr(r.Header.Get(headerCaller)); err == nil {
		h.caller = a.String()
	}
	h.by = toldCaller(r.Header)
	return nil
}

// arrive calls checkArrival for a request whose body was read.
func (c *callers) arrive(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.checkArrival(r, callOf(r).body); err != nil {
			c.refusals.answerUnheard(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromPeer refuses a request that claims to be forwarded but comes neither from this machine nor from a replica.
func (c *callers) fromPeer(r *http.Request, from string) error {
	if isLocal(r) || c.fromReplica(r) {
		return nil
	}
	return ipam.Refuse(ipam.ReasonUnavailable,
		"the connection is not one of replica %q: it shows no certificate of a replica", clip(from)).
		WithHint("a client sends no %s", headerForwarded)
}

// fromReplica reports whether a request came over a connection of another replica.
func (c *callers) fromReplica(r *http.Request) bool {
	of := connectionOf(r)
	if r.TLS == nil || c.isReplica == nil || of == nil {
		return false
	}
	if v := of.replica.Load(); v != nil && time.Since(v.at) < recheck {
		return v.yes
	}
	v := &verdict{c.isReplica(r.TLS), time.Now()}
	of.replica.Store(v)
	if v.yes {
		of.setKnown(true)
	}
	return v.yes
}

package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// prove signs a request that a replica forwards, with the secret that the two share and nobody else has. It covers all
// that the receiver goes by, so that nothing of one request serves another.
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

// arrive notes when a request came, and from whom. Whoever answers it, an ADD is as old as that: a DEL that came later
// to another replica is the newer one. What a client has sent came when it reached this machine: a replica that was
// stopped may read it long after the container has gone. Of a forwarded one the replica says so, and has to prove that
// it is one; what does not is refused with a status that has a replica of an earlier release answer by itself.
func (s *Service) arrive(r *http.Request, body []byte) (*http.Request, error) {
	h, now := forwardingOf(r), s.Leases.Now()
	h.socketAge = socketAge(r)
	if h.from == "" {
		h.arrived = now.Add(-h.socketAge)
		return h.on(r), nil
	}
	if err := s.fromPeer(r, h.from); err != nil {
		return r, err
	}
	secret := s.Peers.Secret(h.from)
	want := prove(secret, h.from, s.Peers.Self().ID(), r.Method, r.RequestURI, r.Header, sha256.Sum256(body))
	if (secret == nil || !hmac.Equal([]byte(want), []byte(r.Header.Get(headerProof)))) && !failpoint.Broken("proof") {
		return r, ipam.Refuse(ipam.ReasonUnavailable, "the request does not prove that replica %q forwarded it",
			clip(h.from)).
			WithHint("a client sends no %s", headerForwarded)
	}
	arrived, err := parseStarted(r.Header.Get(headerArrived))
	if err != nil || now.Sub(arrived) > allocator.MaxRequestTime {
		return r, ipam.Refuse(ipam.ReasonUnavailable, "the request has been on its way for longer than %s",
			allocator.MaxRequestTime).WithHint("ask again")
	}
	if h.arrived = arrived; arrived.After(now) { // two replicas know the time to a second or so
		h.arrived = now
	}
	if a, err := netip.ParseAddr(r.Header.Get(headerCaller)); err == nil {
		h.caller = a.String()
	}
	h.by = toldCaller(r.Header)
	return h.on(r), nil
}

// fromPeer refuses a request that says to be forwarded and comes neither from this machine nor from a replica.
func (s *Service) fromPeer(r *http.Request, from string) error {
	if isLocal(r) || s.fromReplica(r) {
		return nil
	}
	return ipam.Refuse(ipam.ReasonUnavailable,
		"the connection is not one of replica %q: it shows no certificate of a replica", clip(from)).
		WithHint("a client sends no %s", headerForwarded)
}

// prove adds the proof of who forwards it to a request to the leader. A leader of a release without keys asks for no
// proof.
func (f *Forwarder) prove(out *http.Request, leader Leader, body []byte) {
	if secret := f.peers.Secret(leader.ID()); secret != nil {
		from := out.Header.Get(headerForwarded)
		out.Header.Set(headerProof, prove(secret, from, leader.ID(), out.Method, out.URL.RequestURI(), out.Header,
			sha256.Sum256(body)))
	}
}

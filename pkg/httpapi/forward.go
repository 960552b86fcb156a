package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/limiter"
	"github.com/bcsnet/bcsnet/pkg/replica"
)

const (
	// quietTime is the time for which a leader may be silent before it is asked for a sign of life, and signTime bounds
	// the wait for that. A stopped process accepts connections and stays silent; a busy one answers /readyz. So nobody
	// waits longer than the sum, one second, for a leader that is dead or cannot decide, and a queue at the leader does
	// not cause the work to be done twice.
	quietTime, signTime = 400 * time.Millisecond, 600 * time.Millisecond
	// untoldTime bounds the leader's time for a client that does not say how long it waits: the plugin of the released
	// system gives up after ten seconds, and if the leader does not answer, this replica must answer before that.
	untoldTime = 8 * time.Second
	// probeEvery is the interval in which a silent leader is probed.
	probeEvery = time.Second
	// maxForwarded bounds the requests that a follower has at the leader at the same time. Each uses a connection, and
	// all connections are kept: during a storm, a new connection for each request would use up the machine's ports.
	// This number keeps a leader busy.
	maxForwarded = 1024
	// maxForwardedBack of the connections are for requests that give addresses back, and the rest for others: an ADD
	// may wait at the leader for the very address that a DEL behind it frees. This number keeps a leader busy with
	// writes.
	maxForwardedBack = 128
	// idleTime is the time for which an unused connection is kept.
	idleTime = 2 * time.Minute
	// maxReply bounds a leader's answer, in bytes: the answer to the release of a host with a full pool has some
	// megabytes.
	maxReply = 32 << 20
)

// Reasons why this replica answered a request instead of the leader.
const (
	forwardAnswered    = "answered"
	forwardRefused     = "refused"     // the leader answered 5xx, without a decision
	forwardUnreachable = "unreachable" // no connection, a broken one, or another program answered
	forwardSilent      = "silent"      // no answer and no sign of life, or it says that it cannot decide
	forwardAvoided     = "avoided"     // it was silent recently
)

// Forwarder forwards a follower's requests to the leader. It is an optimisation: if the leader does not answer, the
// follower does, by the same protocol.
type Forwarder struct {
	peers     Peers
	transport *http.Transport
	// signs is the transport for signs of life, which never wait for a connection.
	signs *http.Transport
	// limiters are the limiters by class.
	limiters [2]*limiter.Limiter
	results  *prometheus.CounterVec
	log      *slog.Logger
	troubles rate.Sometimes
	openly   rate.Sometimes

	probes singleflight.Group
	// sign is the time of a leader's last answer of any kind.
	sign atomic.Pointer[time.Time]
	// silent is the ID of a leader that did not answer; no request is forwarded to it until it answers.
	silent  atomic.Pointer[string]
	trouble chan struct{}
}

// NewForwarder returns a Forwarder. secure is the TLS configuration between replicas; nil if none of them has https.
func NewForwarder(p Peers, secure *tls.Config, r prometheus.Registerer, log *slog.Logger) *Forwarder {
	f := &Forwarder{
		peers: p, log: log, troubles: rate.Sometimes{Interval: time.Second},
		openly:    rate.Sometimes{First: 1},
		transport: newTransport(maxForwarded, secure), signs: newTransport(1, secure),
		limiters: [2]*limiter.Limiter{
			limiter.Take: limiter.New(maxForwarded - maxForwardedBack), limiter.GiveBack: limiter.New(maxForwardedBack),
		},
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bcsnet_forwarded_total",
			Help: "Requests that a follower had the leader answer, by result; all but answered were answered by the " +
				"follower.",
		}, []string{"result"}),
		trouble: make(chan struct{}, 1),
	}
	f.transport.MaxConnsPerHost = maxForwarded // requests wait for a free connection
	r.MustRegister(f.results)
	for _, result := range []string{forwardAnswered, forwardRefused, forwardUnreachable, forwardSilent,
		forwardAvoided} {
		f.results.WithLabelValues(result)
	}
	return f
}

// DialBy sets the function that connects to other replicas, before any request. It is for tests.
func (f *Forwarder) DialBy(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	f.transport.DialContext, f.signs.DialContext = dial, dial
}

// newTransport makes a transport that keeps the connections to a replica that it opens.
func newTransport(connections int, secure *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig:     secure.Clone(),
		DialContext:         (&net.Dialer{Timeout: quietTime + signTime}).DialContext,
		MaxIdleConnsPerHost: connections, IdleConnTimeout: idleTime / 2, TLSHandshakeTimeout: quietTime + signTime,
		DisableCompression: true,
	}
}

// backlog estimates the wait for a connection to the leader.
func (f *Forwarder) backlog() time.Duration {
	if f == nil {
		return 0
	}
	return max(f.limiters[limiter.Take].Backlog(), f.limiters[limiter.GiveBack].Backlog())
}

// target returns the leader to forward to, or the reason why there is none.
func (f *Forwarder) target() (Leader, string) {
	leader, ok := f.peers.Leader()
	self := f.peers.Self()
	switch {
	case f.peers.Leading():
		return leader, "this replica leads"
	case !ok:
		return leader, "no leader is known"
	case leader.ID() == self.ID():
		return leader, "this replica holds the Lease"
	case leader.URL == "":
		return leader, "the leader names no URL"
	case leader.URL == self.URL:
		return leader, "the leader's URL is this replica's own"
	}
	u, err := replica.ParseURL(leader.URL)
	switch {
	case err != nil:
		return leader, "the leader's URL cannot be used: " + err.Error()
	case replica.Loopback(u) && leader.Name != self.Name:
		return leader, "the leader's URL " + leader.URL + " leads back to this machine"
	case u.Scheme == "http" && !replica.Loopback(u):
		why := "the leader's URL " + leader.URL +
			" is plain HTTP to another machine, which an earlier release uses"
		f.openly.Do(func() { f.log.Warn("requests are not forwarded to the leader", "reason", why) })
		return leader, why
	}
	return leader, ""
}

// reply is a leader's answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// overloaded reports whether the leader refused because of its load: doing the work here would only add to it.
func (a *reply) overloaded() bool { return a.header.Get(headerReason) == string(ipam.ReasonOverloaded) }

// passOn sends the leader's answer, byte for byte.
func (a *reply) passOn(w http.ResponseWriter) {
	for _, name := range []string{"Content-Type", "Retry-After", headerReason, headerAnsweredBy, headerReceipt} {
		if v := a.header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client may be gone
}

// forward forwards a request to the leader, unless it was already forwarded. The reply is nil if this replica must
// answer. The error is set if no replica may answer, because the leader already has the maximum of requests from this
// replica. The leader gets two thirds of the remaining time. The rest is for this replica, in case the leader has no
// answer.
func (f *Forwarder) forward(r *http.Request, body []byte) (*reply, error) {
	h := forwardingOf(r)
	if h.from != "" {
		return nil, nil
	}
	leader, why := f.target()
	if why != "" {
		return nil, nil
	}
	if id := f.silent.Load(); id != nil && *id == leader.ID() {
		f.results.WithLabelValues(forwardAvoided).Inc()
		return nil, nil
	}
	leave, err := f.enter(r)
	if err != nil {
		return nil, err
	}
	defer leave()
	deadline, _ := r.Context().Deadline()
	budget := time.Until(deadline) * 2 / 3
	if r.Header.Get(headerTimeout) == "" {
		budget = min(budget, untoldTime)
	}
	ctx, cancel := context.WithTimeout(r.Context(), budget)
	defer cancel()
	out, err := http.NewRequestWithContext(ctx, r.Method, leader.URL+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, nil // the URL was parsed before
	}
	out.Header.Set("Content-Type", "application/json")
	out.Header.Set("X-Request-Id", idOf(r))
	out.Header.Set(headerForwarded, f.peers.Self().ID())
	out.Header.Set(headerTimeout, strconv.FormatInt(max(1, budget.Milliseconds()), 10))
	out.Header.Set(headerArrived, h.arrived.Format(time.RFC3339Nano))
	out.Header.Set(headerCaller, h.caller)
	if receipt := r.Header.Get(headerReceipt); receipt != "" {
		out.Header.Set(headerReceipt, receipt)
	}
	h.by.writeTo(out.Header)
	f.prove(out, leader, body)
	propagate(r, out)
	answer, result, err := f.ask(out, leader)
	if r.Context().Err() != nil {
		return nil, nil // the caller gave up, which proves nothing about the leader
	}
	f.results.WithLabelValues(result).Inc()
	switch result {
	case forwardAnswered:
		return answer, nil
	case forwardSilent, forwardUnreachable:
		f.avoid(leader)
	default:
	}
	f.troubles.Do(func() {
		f.log.Warn("the leader did not answer; this replica does", "leader", leader.ID(), "url", leader.URL, "result",
			result, "error", err, "request_id", idOf(r))
	})
	return nil, nil
}

// leaderFirst returns the middleware that forwards operations to the leader. The leader counts and logs the operations
// that it answers.
func (f *Forwarder) leaderFirst(refusals *refusals) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := callOf(r)
			if !c.route.forward {
				next.ServeHTTP(w, r)
				return
			}
			switch answer, err := f.forward(r, c.body); {
			case err != nil:
				refusals.answer(w, r, err)
			case answer != nil:
				answer.passOn(w)
				c.end(nil)
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
}

// enter waits for one of the connections to the leader for the class of the request.
func (f *Forwarder) enter(r *http.Request) (leave func(), err error) {
	class := limiter.Take
	if r.Method == http.MethodDelete {
		class = limiter.GiveBack
	}
	leave, err = f.limiters[class].Enter(r.Context(), class, "")
	if errors.Is(err, limiter.ErrOverloaded) {
		taken, _ := f.limiters[class].Busy()
		err = ipam.Refuse(ipam.ReasonOverloaded, "the leader has %d requests of this replica: %v", taken, err).
			WithHint("ask again, not before the time that Retry-After tells")
	} else if err != nil {
		err = ipam.Refuse(ipam.ReasonUnavailable, "the request ran out of time: %v", err).WithHint("ask again")
	}
	return leave, err
}

// ask sends a request and waits for its answer as long as the leader gives signs of life.
func (f *Forwarder) ask(out *http.Request, leader Leader) (*reply, string, error) {
	ctx, cancel := context.WithCancel(out.Context())
	defer cancel()
	type outcome struct {
		*reply
		err error
	}
	answered := make(chan outcome, 1)
	go func() {
		a, err := f.roundTrip(f.transport, out.WithContext(ctx))
		answered <- outcome{a, err}
	}()
	signs := make(chan bool, 1)
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for {
		select {
		case o := <-answered:
			switch {
			case o.err != nil && out.Context().Err() != nil:
				return nil, forwardRefused, o.err // it is alive, but had too little time
			case o.err != nil:
				return nil, forwardUnreachable, o.err
			case o.header.Get(headerAnsweredBy) == "":
				return nil, forwardUnreachable, errors.New("what answers there is no replica")
			case o.status >= http.StatusInternalServerError && !o.overloaded():
				return nil, forwardRefused, errors.New(http.StatusText(o.status))
			}
			return o.reply, forwardAnswered, nil
		case <-quiet.C:
			go func() { signs <- f.lives(leader) }()
		case lives := <-signs:
			if !lives {
				return nil, forwardSilent, errors.New("no answer, and no sign of life within a second")
			}
			quiet.Reset(quietTime)
		}
	}
}

func (f *Forwarder) roundTrip(by *http.Transport, out *http.Request) (*reply, error) {
	resp, err := by.RoundTrip(out) // not a client, which would follow redirects
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err == nil && len(body) > maxReply {
		err = errors.New("the answer is too long")
	}
	if err != nil {
		return nil, err
	}
	answer := &reply{resp.StatusCode, resp.Header, body}
	if answer.status < http.StatusInternalServerError || answer.overloaded() {
		now := time.Now()
		f.sign.Store(&now)
	}
	return answer, nil
}

// prove adds to a request for the leader the proof of the forwarding replica. A leader of a release without keys
// requires no proof.
func (f *Forwarder) prove(out *http.Request, leader Leader, body []byte) {
	if secret := f.peers.Secret(leader.ID()); secret != nil {
		from := out.Header.Get(headerForwarded)
		out.Header.Set(headerProof, prove(secret, from, leader.ID(), out.Method, out.URL.RequestURI(), out.Header,
			sha256.Sum256(body)))
	}
}

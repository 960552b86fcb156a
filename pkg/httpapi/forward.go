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
	// quietTime is how long a leader may say nothing before it is asked for a sign of life, and signTime how long
	// that is waited for. A stopped process takes connections and stays silent, a busy one answers /readyz: so nobody
	// waits longer than the sum, one second, for one that is dead or says that it cannot decide, and a queue at the
	// leader is no reason to do the work twice.
	quietTime, signTime = 400 * time.Millisecond, 600 * time.Millisecond
	// untoldTime is what a leader has at most for a client that does not say how long it waits: the plugin of the
	// released system gives up after ten seconds, and this replica is to answer before that should the leader not.
	untoldTime = 8 * time.Second
	// probeEvery is how often a leader that was silent is asked whether it is back.
	probeEvery = time.Second
	// maxForwarded is how many requests a follower has at the leader at once, each on a connection, and all of these
	// are kept: a storm that opened one for each request would leave the machine without free ports. As many keep a
	// leader busy.
	maxForwarded = 1024
	// maxForwardedBack of them are for requests that give addresses back, and the others for the rest: an ADD may wait
	// at the leader for the very address that a DEL behind it frees. As many keep a leader busy with writes.
	maxForwardedBack = 128
	// idleTime is how long a connection that nobody uses is kept here.
	idleTime = 2 * time.Minute
	// maxReply bounds what is read of a leader's answer: the release of a host with a full pool has some megabytes.
	maxReply = 32 << 20
)

// Why a request was answered here and not by the leader.
const (
	forwardAnswered    = "answered"
	forwardRefused     = "refused"     // the leader had no decision: 5xx
	forwardUnreachable = "unreachable" // no connection, a cut one, or an answer of something else
	forwardSilent      = "silent"      // no answer and no sign of life, or it says that it cannot decide
	forwardAvoided     = "avoided"     // it was silent a moment ago
)

// Forwarder has the leader answer what a follower is asked. It is an optimisation: when the leader does not answer, the
// follower does, by the same protocol.
type Forwarder struct {
	peers     Peers
	transport *http.Transport
	// signs is for signs of life, which never wait for a connection.
	signs *http.Transport
	// limiters are by class.
	limiters [2]*limiter.Limiter
	results  *prometheus.CounterVec
	log      *slog.Logger
	troubles rate.Sometimes
	openly   rate.Sometimes

	probes singleflight.Group
	// sign is when a leader answered anything last.
	sign atomic.Pointer[time.Time]
	// silent is the ID of a leader that did not answer; it is not asked until it does.
	silent  atomic.Pointer[string]
	trouble chan struct{}
}

// NewForwarder makes a forwarder. secure is by which the replicas know each other; nil where none of them has https.
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
	f.transport.MaxConnsPerHost = maxForwarded // one that is about to be free again is waited for
	r.MustRegister(f.results)
	for _, result := range []string{forwardAnswered, forwardRefused, forwardUnreachable, forwardSilent,
		forwardAvoided} {
		f.results.WithLabelValues(result)
	}
	return f
}

// DialBy has other replicas be reached by a function, before any is. It is for tests.
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

// backlog returns about how long requests wait for a connection to the leader.
func (f *Forwarder) backlog() time.Duration {
	if f == nil {
		return 0
	}
	return max(f.limiters[limiter.Take].Backlog(), f.limiters[limiter.GiveBack].Backlog())
}

// target returns the leader to forward to, or why there is none.
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
		return leader, "the leader's URL is that of this replica"
	}
	u, err := replica.ParseURL(leader.URL)
	switch {
	case err != nil:
		return leader, "the leader's URL cannot be used: " + err.Error()
	case replica.Loopback(u) && leader.Name != self.Name:
		return leader, "the leader's URL " + leader.URL + " leads back to this machine"
	case u.Scheme == "http" && !replica.Loopback(u):
		why := "the leader's URL " + leader.URL +
			" is plain HTTP to another machine, as a release before this one has it"
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

// overloaded reports whether the leader refused because too much waits: to do the work here would only add to it.
func (a *reply) overloaded() bool { return a.header.Get(headerReason) == string(ipam.ReasonOverloaded) }

// passOn answers with it, byte for byte.
func (a *reply) passOn(w http.ResponseWriter) {
	for _, name := range []string{"Content-Type", "Retry-After", headerReason, headerAnsweredBy, headerReceipt} {
		if v := a.header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client may have gone
}

// forward asks the leader to answer a request that has not been forwarded yet. The reply is nil when this replica has
// to answer. The error is set when no replica may answer, because the leader already has as many requests of this
// replica as it may. Two thirds of the time that is left are the leader's; the rest is for this replica, should the
// leader have no answer.
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
		return nil, nil // a URL that was parsed before
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
		return nil, nil // nobody waits: that says nothing about the leader
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

// leaderFirst returns the middleware by which the leader answers the operations that followers forward. The leader
// counts and logs what it has answered.
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

// enter waits for one of the connections to the leader that its kind of request has, as a write waits for its turn.
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
				return nil, forwardRefused, o.err // it lives, and had not enough time
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
	resp, err := by.RoundTrip(out) // not a client: nobody redirects
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

// prove adds the proof of who forwards it to a request to the leader. A leader of a release without keys asks for no
// proof.
func (f *Forwarder) prove(out *http.Request, leader Leader, body []byte) {
	if secret := f.peers.Secret(leader.ID()); secret != nil {
		from := out.Header.Get(headerForwarded)
		out.Header.Set(headerProof, prove(secret, from, leader.ID(), out.Method, out.URL.RequestURI(), out.Header,
			sha256.Sum256(body)))
	}
}

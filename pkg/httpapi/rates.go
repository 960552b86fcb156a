package httpapi

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/utils/lru"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

const (
	// perSecond is the number of requests per second that a node may send. burst is the number at once, enough for a
	// full node that starts.
	perSecond, burst = 50, 300
	// maxRates bounds the callers of each kind that are counted. The least recently seen ones are forgotten.
	maxRates = 16384
	// turnTime bounds the wait of a release for its permission check.
	turnTime = 2 * time.Second
	// unknownBits is the prefix length by which unknown IPv6 callers are counted: a machine has a whole prefix of this
	// length.
	unknownBits = 64
)

// rateKind is the kind of key by which a rate is counted.
type rateKind string

// Kinds of rates, which are labels of a metric.
const (
	// rateNode counts a node, by its name.
	rateNode rateKind = "node"
	// rateHost counts a machine that calls over plain HTTP, by its address.
	rateHost rateKind = "host"
	// rateUser counts a user that is not on a node, by the host that the request names.
	rateUser rateKind = "user"
	// rateUnknown counts the unknown callers of an address, by their failures.
	rateUnknown rateKind = "unknown"
	// rateDenied counts a known user, by RBAC's refusals.
	rateDenied rateKind = "denied"
	// rateFruitless counts the callers of the first three kinds, by their releases that free nothing.
	rateFruitless rateKind = "fruitless"
)

func rateKinds() []rateKind {
	return []rateKind{rateNode, rateHost, rateUser, rateUnknown, rateDenied, rateFruitless}
}

// rates bounds the requests per second that each caller may send to this replica.
type rates struct {
	// limited counts refused requests.
	limited *prometheus.CounterVec

	mu sync.Mutex
	by map[rateKind]*lru.Cache // of *rate.Limiter
}

func newRates(limited *prometheus.CounterVec) *rates {
	all := &rates{limited: limited, by: map[rateKind]*lru.Cache{}}
	for _, kind := range rateKinds() {
		all.by[kind] = lru.New(maxRates)
	}
	return all
}

// of returns the rate of a caller.
func (a *rates) of(kind rateKind, key string) *rate.Limiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.by[kind].Get(key); ok {
		return known.(*rate.Limiter)
	}
	l := rate.NewLimiter(perSecond, burst)
	a.by[kind].Add(key, l)
	return l
}

// keepRate refuses a request of a caller that has sent too many. Releases do not count as long as they free addresses,
// and neither do schedulers' questions, whose memory is bounded.
func (a *rates) keepRate(r *http.Request, c *call, kind rateKind, key string) error {
	switch op := c.route; {
	case op.access.resource == placements:
		return nil
	case op.frees != nil:
		return a.keepFruitless(r, c, string(kind)+" "+key)
	case op.givesBack():
		return nil
	case a.of(kind, key).Allow():
		return nil
	}
	return a.tooFast(kind)
}

// keepFruitless refuses a release of a caller that has sent too many releases which, by what this replica knows, free
// nothing. A release that frees an address is always accepted. A refused one is repeated, because its lease may not be
// visible here yet.
func (a *rates) keepFruitless(r *http.Request, c *call, key string) error {
	if c.route.frees(r, c.body) || a.of(rateFruitless, key).Allow() || failpoint.Broken("fruitless") {
		return nil
	}
	a.limited.WithLabelValues(string(rateFruitless)).Inc()
	return ipam.Refuse(ipam.ReasonUnavailable, "more than %d releases a second that free nothing came from this "+
		"%s, after %d at once", perSecond, key, burst).WithHint("ask again")
}

// tooFast counts a request that is refused because of its caller's rate, and returns the refusal.
func (a *rates) tooFast(kind rateKind) error {
	a.limited.WithLabelValues(string(kind)).Inc()
	return ipam.Refuse(ipam.ReasonTooManyRequests, "more than %d requests a second came from this %s, after %d at once",
		perSecond, kind, burst).WithHint("ask again, not before the time that Retry-After tells")
}

// tooOften counts a release that got no turn, and returns the refusal. Its status is not 429, which is for callers that
// may give up: a release must be repeated until it is done.
func (a *rates) tooOften(kind rateKind) error {
	a.limited.WithLabelValues(string(kind)).Inc()
	return ipam.Refuse(ipam.ReasonUnavailable,
		"the API server is asked about %d callers a second that are %s, and the turn of this one did not come within "+
			"%s", perSecond, kind, turnTime).WithHint("ask again")
}

// settle records the outcome of a question to the API server.
type settle func(refused bool)

// turn admits a question to the API server about a caller. Only negative answers count: a caller with too many of them
// is refused without a question. Releases wait for their turn among themselves. If many questions come at once, all are
// asked, and the excess delays the next ones.
func (a *rates) turn(ctx context.Context, op route, kind rateKind, key string) (settle, error) {
	l := a.of(kind, key)
	if l.Tokens() >= 1 {
		return func(refused bool) {
			if refused {
				l.ReserveN(time.Now(), 1) // even below zero
			}
		}, nil
	}
	if !op.givesBack() {
		return nil, a.tooFast(kind)
	}
	ctx, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	if err := l.Wait(ctx); err != nil {
		return nil, a.tooOften(kind)
	}
	return func(refused bool) {
		if !refused {
			l.ReserveN(time.Now(), -1) // return the reserved turn
		}
	}, nil
}

// unknownKey returns the key by which an unknown caller is counted.
func unknownKey(r *http.Request) string {
	source, _ := sourceOf(r)
	if source.Is6() {
		if p, err := source.Prefix(unknownBits); err == nil {
			return p.String()
		}
	}
	return source.String()
}

// keepUserRate refuses a request of a known user that has sent too many. A node is one caller, whatever it asks for. A
// user that is not on a node acts for many hosts and is counted for each; on this machine, users are not counted.
func (a *rates) keepUserRate(r *http.Request, c *call, who *identity, node string, bound bool, of subject) error {
	if bound {
		return a.keepRate(r, c, rateNode, node)
	}
	if source, ok := sourceOf(r); ok && source.IsLoopback() {
		return nil
	}
	host, _ := netip.ParseAddr(of.Host) // whatever is none is one
	return a.keepRate(r, c, rateUser, who.user.Username+" "+host.String())
}

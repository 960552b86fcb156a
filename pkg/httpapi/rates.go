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
	// perSecond is how many requests a second a node may send, and burst how many at once: as many as a full node sends
	// that starts.
	perSecond, burst = 50, 300
	// maxRates is of how many callers of each kind it is counted. The ones that were seen longest ago are forgotten.
	maxRates = 16384
	// turnTime is how long what gives addresses back waits to be asked about.
	turnTime = 2 * time.Second
	// unknownBits is the prefix by which unknown callers of IPv6 are counted: a machine has a whole one of these.
	unknownBits = 64
)

// rateKind is what a rate is counted by.
type rateKind string

// Kinds of rates, which are labels of a metric.
const (
	// rateNode is of a node, by its name.
	rateNode rateKind = "node"
	// rateHost is of a machine that calls by plain HTTP, by its address.
	rateHost rateKind = "host"
	// rateUser is of a user that is on no node, by the host that the request names.
	rateUser rateKind = "user"
	// rateUnknown is of the callers of an address who are not known, by their failures.
	rateUnknown rateKind = "unknown"
	// rateDenied is of a known user, by what RBAC refused.
	rateDenied rateKind = "denied"
	// rateFruitless is of whoever is counted by the first three, by the releases that free nothing.
	rateFruitless rateKind = "fruitless"
)

func rateKinds() []rateKind {
	return []rateKind{rateNode, rateHost, rateUser, rateUnknown, rateDenied, rateFruitless}
}

// rates bound how many requests a second each caller may send to this replica.
type rates struct {
	// limited counts what is refused.
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

// keepRate refuses a request of a caller who has sent too many. What gives addresses back does not count, as long as it
// frees any, and neither do questions of schedulers, whose memory is bounded.
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

// keepFruitless refuses a release that frees nothing by what this replica knows, of a caller who has sent too many of
// these. One that frees an address is always taken. A refused one comes again: what it is about may be on its way.
func (a *rates) keepFruitless(r *http.Request, c *call, key string) error {
	if c.route.frees(r, c.body) || a.of(rateFruitless, key).Allow() || failpoint.Broken("fruitless") {
		return nil
	}
	a.limited.WithLabelValues(string(rateFruitless)).Inc()
	return ipam.Refuse(ipam.ReasonUnavailable, "more than %d releases a second that free nothing came from this "+
		"%s, after %d at once", perSecond, key, burst).WithHint("ask again")
}

// tooFast counts a request that is refused for its caller's rate, and returns the refusal.
func (a *rates) tooFast(kind rateKind) error {
	a.limited.WithLabelValues(string(kind)).Inc()
	return ipam.Refuse(ipam.ReasonTooManyRequests, "more than %d requests a second came from this %s, after %d at once",
		perSecond, kind, burst).WithHint("ask again, not before the time that Retry-After tells")
}

// tooOften counts a request that gives addresses back and got no turn, and returns the refusal. HTTP 429 is for those
// who may stay away: who gives back has to come again until it is done.
func (a *rates) tooOften(kind rateKind) error {
	a.limited.WithLabelValues(string(kind)).Inc()
	return ipam.Refuse(ipam.ReasonUnavailable,
		"the API server is asked about %d callers a second that are %s, and the turn of this one did not come within "+
			"%s", perSecond, kind, turnTime).WithHint("ask again")
}

// settle records how a question to the API server ended.
type settle func(refused bool)

// turn admits a question to the API server about a caller. Only answers that refuse count: who has had too many of them
// is refused without a question. What gives addresses back waits for its turn among its like. Of many questions at once
// all are asked, and those too many delay the next ones.
func (a *rates) turn(ctx context.Context, op route, kind rateKind, key string) (settle, error) {
	l := a.of(kind, key)
	if l.Tokens() >= 1 {
		return func(refused bool) {
			if refused {
				l.ReserveN(time.Now(), 1) // below zero, too
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
			l.ReserveN(time.Now(), -1) // the turn was paid for
		}
	}, nil
}

// unknownKey returns by what an unknown caller is counted.
func unknownKey(r *http.Request) string {
	source, _ := sourceOf(r)
	if source.Is6() {
		if p, err := source.Prefix(unknownBits); err == nil {
			return p.String()
		}
	}
	return source.String()
}

// keepUserRate refuses a request of a known user who has sent too many. A node is one caller, whatever it asks for. A
// user on no node acts for many hosts and is counted by each; on this machine he is not.
func (a *rates) keepUserRate(
	r *http.Request, c *call, who *identity, node string, bound bool, of subject,
) error {
	if bound {
		return a.keepRate(r, c, rateNode, node)
	}
	if source, ok := sourceOf(r); ok && source.IsLoopback() {
		return nil
	}
	host, _ := netip.ParseAddr(of.Host) // whatever is none is one
	return a.keepRate(r, c, rateUser, who.user.Username+" "+host.String())
}

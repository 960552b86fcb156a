package ui

import (
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/lru"
)

const (
	// perSecond and burst bound the tokens that one source may have the API server verify, allPerSecond and allBurst
	// those of all sources.
	perSecond, burst       = 1, 10
	allPerSecond, allBurst = 10, 50
	// mostSources bounds the counted sources, mostWrong the remembered wrong tokens.
	mostSources, mostWrong = 4096, 4096
	// wrongKnown is the time for which a refused token is refused without asking the API server again.
	wrongKnown = 10 * time.Second
)

// patience bounds the cost of clients that try tokens.
type patience struct {
	all   *rate.Limiter
	wrong *cache.LRUExpireCache // by the hash of a token

	mu sync.Mutex
	by *lru.Cache // of *rate.Limiter, by address
}

func newPatience() *patience {
	return &patience{
		all: rate.NewLimiter(allPerSecond, allBurst), wrong: cache.NewLRUExpireCache(mostWrong),
		by: lru.New(mostSources),
	}
}

// allows reports whether a client may have one more token verified.
func (p *patience) allows(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := source(r)
	of, ok := p.by.Get(at)
	if !ok {
		of = rate.NewLimiter(perSecond, burst)
		p.by.Add(at, of)
	}
	return of.(*rate.Limiter).Allow() && p.all.Allow()
}

// refused remembers a wrong token, and knowsWrong recognizes it.
func (p *patience) refused(token string) { p.wrong.Add(sha256.Sum256([]byte(token)), true, wrongKnown) }
func (p *patience) knowsWrong(token string) bool {
	_, ok := p.wrong.Get(sha256.Sum256([]byte(token)))
	return ok
}

// source returns the key for counting clients: their IPv4 address or IPv6 /64.
func source(r *http.Request) netip.Prefix {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	a, parse := netip.ParseAddr(host)
	if err != nil || parse != nil {
		return netip.Prefix{}
	}
	a = a.Unmap().WithZone("")
	p, _ := a.Prefix(min(a.BitLen(), 64)) // an address has these bits
	return p
}

package httpapi

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/limiter"
)

// limits bounds the callers' use of this replica, however many they are and whatever they send: requests per second of
// each, ADDs in progress, memory of bodies and of answers. Each part has its own lock, and no part calls another.
type limits struct {
	rates  *rates
	adds   *admission
	memory memoryLimit
	lists  lists
	// room estimates the number of further writes that the API server accepts in time.
	room     func() int
	refusals *refusals
}

func newLimits(room func() int, m *Metrics, refusals *refusals) *limits {
	return &limits{
		rates: newRates(m.limited), adds: &admission{}, memory: newMemoryLimit(), lists: newLists(), room: room,
		refusals: refusals,
	}
}

// readBody reads the body of a request that has one, and releases its memory when the request has ended.
func (l *limits) readBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r)
		var status int
		var err error
		switch most := c.codec.maxBody(); {
		case c.route.hasBody && most > maxBody:
			var release func()
			c.body, release, status, err = l.memory.read(w, r, most, senderOf(r))
			defer release()
		case c.route.hasBody:
			c.body, status, err = l.memory.readSmall(w, r, most, senderOf(r))
		}
		if err != nil {
			l.refusals.answerWith(w, r, status, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admitAdd refuses an ADD that could not be served in time, and passes the ADD's age to the limiters it waits for.
func (l *limits) admitAdd(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r)
		if !c.route.adds() {
			next.ServeHTTP(w, r)
			return
		}
		var from struct {
			Namespace string `json:"podNamespace"`
			Network   string `json:"network"`
		}
		_ = json.Unmarshal(c.body, &from) // the full parser refuses a malformed body
		most := min(maxAdds, max(leastAdds, l.room()))
		leave, in := l.adds.enter(from.Namespace+"/"+from.Network, most)
		if !in {
			l.refusals.answerUnheard(w, r, ipam.Refuse(ipam.ReasonOverloaded,
				"%d requests for addresses are under way, as many as can be answered in time", most).
				WithHint("ask again, not before the time that Retry-After tells"))
			return
		}
		defer leave()
		next.ServeHTTP(w, r.WithContext(limiter.Late(r.Context(), c.forwarding.socketAge)))
	})
}

// reserveList reserves memory for the answer to a request for a list until it is written, even if the leader makes it.
func (l *limits) reserveList(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		op := callOf(r).route
		if op.rows == nil {
			next.ServeHTTP(w, r)
			return
		}
		list := l.lists.listing(w, op.rows(r.URL.RawQuery))
		defer list.close()
		if op.forward {
			if err := list.reserve(); err != nil {
				l.refusals.answer(list, r, err)
				return
			}
		}
		next.ServeHTTP(list, r)
	})
}

// beginList waits for the caller's turn before this replica makes the list.
func (l *limits) beginList(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if list, ok := w.(*listing); ok {
			if err := list.begin(r.Context(), forwardingOf(r).caller); err != nil {
				l.refusals.answer(w, r, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

const (
	// maxAdds bounds the requests for addresses in progress: about as many as an API server stores in two seconds.
	maxAdds = 2048
	// leastAdds is the number of requests in progress that are always allowed, however slow the API server is: some of
	// them wait for other things than writes.
	leastAdds = maxAdds / 4
)

// admission bounds the requests for addresses in progress, and refuses others before any work is done for them. The
// limiter of the writes would also refuse them, but only after the pod was looked up and an address picked. After
// saturation, that is most of the controller's work, and takes processor time from the API server.
type admission struct {
	mu       sync.Mutex
	underWay int
	// by is the number of requests in progress for each namespace.
	by map[string]int
}

// enter admits a request; the caller must call leave when the request has ended. If as many requests are in progress as
// most says, only a namespace that has less than its share is admitted, so that one crowded namespace does not block
// the others. The total never exceeds twice most.
func (a *admission) enter(who string, most int) (leave func(), in bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.underWay >= most {
		sharing := len(a.by)
		if a.by[who] == 0 {
			sharing++
		}
		if (a.by[who] >= max(1, most/sharing) || a.underWay >= 2*most) && !failpoint.Broken("admission") {
			return nil, false
		}
	}
	if a.by == nil {
		a.by = map[string]int{}
	}
	a.underWay++
	a.by[who]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.underWay--
		if a.by[who]--; a.by[who] == 0 {
			delete(a.by, who)
		}
	}, true
}

package httpapi

import (
	"sync"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

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

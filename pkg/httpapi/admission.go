package httpapi

import (
	"sync"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

const (
	// maxAdds is how many requests for addresses are under way at once: as many as an API server stores in two seconds
	// or so.
	maxAdds = 2048
	// leastAdds are under way at once however slow the API server is: some of them wait for other things than writes.
	leastAdds = maxAdds / 4
)

// admission bounds how many requests for addresses are under way, and refuses the others before anything is done for
// them. The limiter of the writes would refuse them, too, once a pod was looked up and an address picked: past
// saturation that is most of the controller's work, and takes from the API server the processor on which it stores.
type admission struct {
	mu       sync.Mutex
	underWay int
	// by counts those of a namespace.
	by map[string]int
}

// enter admits a request; leave has to be called when it has ended. Where most are under way, only a namespace that has
// less than its share is admitted, so that a crowd in one does not shut out the others; and never more than twice as
// many.
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

package httpapi

import (
	"encoding/json"
	"sync"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

const (
	// maxAdds is how many requests for addresses are under way at once: as many as an API server stores in two seconds or
	// so.
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

// admitAdd admits a request for addresses, or refuses one that could not be served in time.
func (s *Service) admitAdd(body []byte) (leave func(), err error) {
	var from struct {
		Namespace string `json:"podNamespace"`
		Network   string `json:"network"`
	}
	_ = json.Unmarshal(body, &from) // a malformed body is refused by who reads all of it
	most := min(maxAdds, max(leastAdds, s.Leases.Room()))
	leave, in := s.admission.enter(from.Namespace+"/"+from.Network, most)
	if !in {
		return nil, ipam.Refuse(ipam.ReasonOverloaded,
			"%d requests for addresses are under way, as many as can be answered in time", most).
			WithHint("ask again, not before the time that Retry-After tells")
	}
	return leave, nil
}

package httpapi

import (
	"encoding/json"
	"sync"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

const (
	// maxAdds is how many requests for addresses are under way at once: as many as an API server stores in two seconds or so.
	maxAdds = 2048
	// leastAdds are under way at once however slow the API server is: some of them wait for other things than writes.
	leastAdds = maxAdds / 4
)

// door bounds how many requests for addresses are under way, and refuses the others before anything is done for them.
// The limiter of the writes would refuse them, too, once a pod was looked up and an address picked: past saturation that
// is most of the controller's work, and takes from the API server the processor on which it stores.
type door struct {
	mu     sync.Mutex
	inside int
	// by is how many of them a namespace has.
	by map[string]int
}

// enter lets a request in, and returns how to tell that it has ended. Where most are inside, only a namespace that
// has less than its share gets in, so that a crowd in one does not shut out the others; and never more than twice as many.
func (d *door) enter(who string, most int) (leave func(), in bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inside >= most {
		sharing := len(d.by)
		if d.by[who] == 0 {
			sharing++
		}
		if (d.by[who] >= max(1, most/sharing) || d.inside >= 2*most) && !failpoint.Broken("door") {
			return nil, false
		}
	}
	if d.by == nil {
		d.by = map[string]int{}
	}
	d.inside++
	d.by[who]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.inside--
		if d.by[who]--; d.by[who] == 0 {
			delete(d.by, who)
		}
	}, true
}

// admitAdd lets a request for addresses in. The error is the refusal of one that could not be served in time.
func (s *Service) admitAdd(body []byte) (leave func(), err error) {
	var from struct {
		Namespace string `json:"podNamespace"`
		Network   string `json:"network"`
	}
	_ = json.Unmarshal(body, &from) // what is wrong with it, who reads all of it says
	most := min(maxAdds, max(leastAdds, s.Leases.Room()))
	leave, in := s.door.enter(from.Namespace+"/"+from.Network, most)
	if !in {
		return nil, ipam.Refuse(ipam.ReasonOverloaded, "%d requests for addresses are under way, as many as can be answered in time", most).
			WithHint("ask again, not before the time that Retry-After tells")
	}
	return leave, nil
}

package claim

import (
	"maps"
	"slices"
	"sync"
	"time"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// States remembers of each claim what its object does not say: from one look at it to the next, and from the pods that
// ask. A claim of which nothing is to be remembered has no state. The sets byWorkload and naming name claims that have
// one, and short may name others, so that nobody goes through all of them.
type States struct {
	leads *leadership.Terms
	queue *leadership.Queue

	mu     sync.Mutex
	claims map[string]*state
	// byWorkload has the claims of a workload, which has no UID here.
	byWorkload map[workload.Workload]sets.Set[string]
	// short are the claims that wait for addresses to become free, naming those that name addresses.
	short, naming sets.Set[string]
}

// state is what is remembered of one claim. It is comparable: the zero state is nothing.
type state struct {
	// workload is the claim's; without a Kind while the claim is not known, or has none.
	workload workload.Workload
	// migrated: a pod of the workload was seen that draws its addresses from another claim, or from none.
	migrated bool
	// gone is since when the workload has been seen not to exist.
	gone goneSince
	// owner is what was seen last of the owner of a claim that somebody made.
	owner ownerView
	// wanted is the policy by which the claim is to be made, which was not there when a pod asked; nil for none.
	wanted *workload.Policy
	// unclaimed is since when the claim has been seen not to exist although it keeps addresses which no pod had yet.
	unclaimed time.Time
	// taking is what came of taking addresses ahead, asking what came of asking its workload what that needs.
	taking, asking failures
	// named are the addresses that the claim names; nil for any.
	named *netipx.IPSet
}

// NewStates returns those of a replica that remembers nothing.
func NewStates(leads *leadership.Terms) *States {
	return &States{
		leads: leads, queue: leadership.NewQueue(leads), claims: map[string]*state{},
		byWorkload: map[workload.Workload]sets.Set[string]{}, short: sets.Set[string]{}, naming: sets.Set[string]{},
	}
}

// enqueue has a claim looked at after a delay.
func (s *States) enqueue(name string, after time.Duration) { s.queue.Add(nameOf(name), after) }

func (s *States) enqueueAll(names []string) {
	for _, name := range names {
		s.enqueue(name, claimDelay)
	}
}

// of returns a copy of a claim's state.
func (s *States) of(name string) state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.claims[name]; c != nil {
		return *c
	}
	return state{}
}

// change makes a change of a claim's state.
func (s *States) change(name string, change func(*state)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changeLocked(name, change)
}

func (s *States) changeLocked(name string, change func(*state)) {
	c := s.claims[name]
	if c == nil {
		c = &state{}
		s.claims[name] = c
	}
	if change(c); *c == (state{}) {
		delete(s.claims, name)
	}
}

// remember takes note whose claim it is; an empty Kind forgets the claim. Others of the workload are looked at again.
func (s *States) remember(name string, w workload.Workload) {
	var others []string
	s.change(name, func(c *state) {
		before := c.workload
		if before == w && w.Kind != "" {
			return
		}
		if before.Kind != "" { // a claim that went, or was made anew
			claims := s.byWorkload[before]
			if claims.Delete(name); len(claims) == 0 {
				delete(s.byWorkload, before)
			}
			others = claims.UnsortedList()
		}
		if w.Kind == "" {
			c.workload, c.gone, c.migrated, c.owner = workload.Workload{}, goneSince{}, false, ownerView{}
			return
		}
		if s.byWorkload[w] == nil {
			s.byWorkload[w] = sets.Set[string]{}
		}
		others = append(others, s.byWorkload[w].UnsortedList()...)
		s.byWorkload[w].Insert(name)
		c.workload = w
	})
	s.enqueueAll(others)
}

// claimsOf returns the claims of a workload.
func (s *States) claimsOf(w workload.Workload) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.byWorkload[w]))
}

// workloadChanged has the claims of a workload looked at that was scaled, deleted or annotated.
func (s *States) workloadChanged(w workload.Workload) { s.enqueueAll(s.claimsOf(w)) }

// Asked takes the policy of a pod that wants an address, or has one: claims that annotations made for its workload may
// be what earlier pods said.
func (s *States) Asked(p workload.Policy) {
	if !s.leads.Leading() {
		return
	}
	w := p.Workload
	w.UID = ""
	var others []string
	s.mu.Lock()
	for name := range s.byWorkload[w] {
		if name != p.Claim {
			others = append(others, name)
			s.changeLocked(name, func(c *state) { c.migrated = true })
		}
	}
	s.mu.Unlock()
	s.enqueueAll(others)
}

// Missing takes note of a claim that a pod which asks for an address needs: it may be gone, with its address kept,
// before the claim is made.
func (s *States) Missing(p workload.Policy) {
	if !s.leads.Leading() {
		return
	}
	s.change(p.Claim, func(c *state) { c.wanted = &p })
	s.enqueue(p.Claim, allocator.MaxRequestTime) // which forgets it if nothing came of the request
}

// popWanted returns the policy by which a claim is to be made, once.
func (s *States) popWanted(name string) (p workload.Policy, ok bool) {
	s.change(name, func(c *state) {
		if ok = c.wanted != nil; ok {
			p, c.wanted = *c.wanted, nil
		}
	})
	return p, ok
}

// there forgets by which policy a claim was to be made: it is there, and stays.
func (s *States) there(c claim.Claim) {
	s.change(c.Name, func(of *state) {
		if of.unclaimed = (time.Time{}); !c.Deleting {
			of.wanted = nil
		}
	})
}

// absent returns since when a claim has been seen not to exist that keeps addresses of which no pod had one.
func (s *States) absent(name string, keeps bool) (since time.Time) {
	s.change(name, func(c *state) {
		switch {
		case !keeps:
			c.unclaimed = time.Time{}
		case c.unclaimed.IsZero():
			c.unclaimed = time.Now()
		}
		since = c.unclaimed
	})
	return since
}

// workloadGone takes note that the workload of a claim was seen not to exist, and reports whether it is gone for good.
func (s *States) workloadGone(name string, kind bool) (lasts bool) {
	s.change(name, func(c *state) {
		c.gone = c.gone.seenAgain(time.Now(), kind)
		if lasts = c.gone.lasts(); lasts {
			c.gone = goneSince{}
		}
	})
	return lasts
}

// took takes note of what came of taking addresses ahead, and returns the error that lasts.
func (s *States) notePreallocation(name string, err error) (shown *failure) {
	s.change(name, func(c *state) { c.taking = c.taking.next(err); shown = c.taking.shown })
	return shown
}

// noteNeed takes note of what came of asking the workload of a claim what it needs, and returns the error that
// lasts.
func (s *States) noteNeed(name string, err error) (shown *failure) {
	s.change(name, func(c *state) { c.asking = c.asking.next(err); shown = c.asking.shown })
	return shown
}

// forget drops what was learnt from the object of a claim that no longer exists. What is needed to make it again stays.
func (s *States) forget(name string) {
	s.remember(name, workload.Workload{})
	s.rivals(name, nil)
	s.notePreallocation(name, nil)
	s.noteNeed(name, nil)
}

// waits takes note whether a claim waits for addresses.
func (s *States) waits(name string, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.short.Delete(name); waits {
		s.short.Insert(name)
	}
}

// freed has the claims looked at that wait for addresses: some are free. Each is looked at once until it waits again.
func (s *States) freed() {
	s.mu.Lock()
	if len(s.short) == 0 { // as nearly always
		s.mu.Unlock()
		return
	}
	short := s.short.UnsortedList()
	s.short = sets.Set[string]{}
	s.mu.Unlock()
	s.enqueueAll(short)
}

package claim

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// States remembers of each claim what its object does not have: findings of one reconciliation for the next, and what
// pods that ask for addresses have shown. A claim of which nothing is to be remembered has no state. The claims of
// byWorkload have one, those of short and naming may have none: nobody goes through all of them.
type States struct {
	leads *leadership.Terms
	queue *leadership.Queue

	mu     sync.Mutex
	claims map[string]*state
	// byWorkload has the claims of a workload, which has no UID here.
	byWorkload map[workload.Workload]sets.Set[string]
	// short are the claims that wait for addresses to become free.
	short sets.Set[string]
	// naming are those that name addresses.
	naming naming
	// warned is when a problem with IPAMClaims was logged last.
	warned time.Time
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
	// taking has the failures of preallocation, asking those of reading what the workload needs.
	taking, asking failures
	// refused is why the last request was refused that an IPAMClaim was named for, which has no address; zero for none.
	refused failure
}

// NewStates returns states that remember nothing.
func NewStates(leads *leadership.Terms) *States {
	return &States{
		leads: leads, queue: leadership.NewQueue(leads), claims: map[string]*state{},
		byWorkload: map[workload.Workload]sets.Set[string]{}, short: sets.Set[string]{}, naming: newNaming(),
	}
}

// enqueue queues a claim to be reconciled after a delay.
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

// remember notes the workload of a claim; an empty Kind forgets the claim. The other claims of the workload are
// reconciled again.
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

// workloadChanged queues the claims of a workload that was scaled, deleted or annotated, and of an IPAMClaim also the
// one that would be made for it.
func (s *States) workloadChanged(w workload.Workload) {
	w.UID = ""
	s.enqueueAll(s.claimsOf(w))
	if w.IsIPAMClaim() {
		s.enqueue(w.Namespace+"/"+workload.ClaimOfIPAMClaim(w.Name), claimDelay)
	}
}

// Asked notes the policy of a pod that wants an address, or has one. Other claims that annotations made for its
// workload may be out of date: they were asked for by earlier pods.
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

// Missing notes a claim that a pod needs which asks for an address. The pod may be gone, with its address kept, before
// the claim is made.
func (s *States) Missing(p workload.Policy) {
	if !s.leads.Leading() {
		return
	}
	s.change(p.Claim, func(c *state) { c.wanted = &p })
	s.enqueue(p.Claim, allocator.MaxRequestTime) // then it is forgotten if nothing came of the request
}

// popWanted returns the policy by which a claim is to be made, and forgets it.
func (s *States) popWanted(name string) (p workload.Policy, ok bool) {
	s.change(name, func(c *state) {
		if ok = c.wanted != nil; ok {
			p, c.wanted = *c.wanted, nil
		}
	})
	return p, ok
}

// there notes that a claim exists: it is absent no more. The policy by which it was to be made is forgotten, unless the
// claim is being deleted.
func (s *States) there(c claim.Claim) {
	s.change(c.Name, func(of *state) {
		if of.unclaimed = (time.Time{}); !c.Deleting {
			of.wanted = nil
		}
	})
}

// absent notes that a claim does not exist, and returns since when it has been seen so while it keeps addresses that no
// pod had yet.
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

// workloadGone notes that the workload of a claim was seen not to exist, and reports whether it is gone for good.
func (s *States) workloadGone(name string, kind bool) (lasts bool) {
	s.change(name, func(c *state) {
		c.gone = c.gone.seenAgain(time.Now(), kind)
		if lasts = c.gone.lasts(); lasts {
			c.gone = goneSince{}
		}
	})
	return lasts
}

// notePreallocation notes the outcome of a preallocation, and returns the error that lasts.
func (s *States) notePreallocation(name string, err error) (shown *failure) {
	s.change(name, func(c *state) { c.taking = c.taking.next(err); shown = c.taking.shown })
	return shown
}

// noteNeed notes the outcome of reading what the workload of a claim needs, and returns the error that lasts.
func (s *States) noteNeed(name string, err error) (shown *failure) {
	s.change(name, func(c *state) { c.asking = c.asking.next(err); shown = c.asking.shown })
	return shown
}

// forget drops what was learnt from the object of a claim that no longer exists. What is needed to make the claim again
// stays.
func (s *States) forget(name string) {
	s.remember(name, workload.Workload{})
	s.rivals(name, nil)
	s.notePreallocation(name, nil)
	s.noteNeed(name, nil)
}

// waits notes whether a claim waits for addresses.
func (s *States) waits(name string, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.short.Delete(name); waits {
		s.short.Insert(name)
	}
}

// freed queues the claims that wait for addresses, since some are free now. Each is reconciled once, until it waits
// again.
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

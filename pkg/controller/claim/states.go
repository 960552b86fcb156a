package claim

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/holding"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// States remembers, for each claim, data that its object does not have: findings of one reconciliation for the next,
// and information from pods that ask for addresses. A claim without such data has no state. Only claims in byWorkload
// are sure to have one; claims in short and naming may have none.
type States struct {
	leads *leadership.Terms
	queue *leadership.Queue

	mu     sync.Mutex
	claims map[string]*state
	// byWorkload has the claims of each workload. The workload has no UID here.
	byWorkload map[workload.Workload]sets.Set[string]
	// short are the claims that wait for addresses to become free.
	short holding.Waiting
	// naming are the claims that name addresses.
	naming naming
}

// state is the remembered data of one claim. It is comparable: the zero state has no data.
type state struct {
	// workload is the claim's workload. It has no Kind while the claim is not known, or has no workload.
	workload workload.Workload
	// migrated reports whether a pod of the workload was seen that draws its addresses from another claim, or from
	// none.
	migrated bool
	// gone is the period in which the workload has been seen not to exist.
	gone goneSince
	// owner is the latest information about the owner of a claim that somebody created.
	owner ownerView
	// wanted is the policy for creating the claim, which did not exist when a pod asked; nil for none.
	wanted *workload.Policy
	// unclaimed is the time at which the claim was first seen missing while it kept addresses that no pod had yet; zero
	// if it is not.
	unclaimed time.Time
	// taking has the failures of preallocation, asking those of reading the workload's needs.
	taking, asking failures
	// refused is the reason why the last request with an IPAMClaim, which has no address, was refused; zero for none.
	refused failure
}

// NewStates returns States without data.
func NewStates(leads *leadership.Terms) *States {
	return &States{
		leads: leads, queue: leadership.NewQueue(leads), claims: map[string]*state{},
		byWorkload: map[workload.Workload]sets.Set[string]{}, naming: newNaming(),
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

// remember records the workload of a claim; an empty Kind forgets the claim. The other claims of the workload are
// reconciled again.
func (s *States) remember(name string, w workload.Workload) {
	var others []string
	s.change(name, func(c *state) {
		before := c.workload
		if before == w && w.Kind != "" {
			return
		}
		if before.Kind != "" { // the claim was deleted or created again
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

func (s *States) claimsOf(w workload.Workload) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.byWorkload[w]))
}

// workloadChanged queues the claims of a workload that was scaled, deleted or annotated. For an IPAMClaim it also
// queues the claim that would be created for it.
func (s *States) workloadChanged(w workload.Workload) {
	w.UID = ""
	s.enqueueAll(s.claimsOf(w))
	if w.IsIPAMClaim() {
		s.enqueue(w.Namespace+"/"+workload.ClaimOfIPAMClaim(w.Name), claimDelay)
	}
}

// Asked records the policy of a pod that wants or has an address. Other claims from annotations for its workload may be
// outdated, because earlier pods requested them.
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

// Missing records that a pod which asks for an address needs a claim that does not exist. Before the claim is created,
// the pod may already be gone and its address kept.
func (s *States) Missing(p workload.Policy) {
	if !s.leads.Leading() {
		return
	}
	s.change(p.Claim, func(c *state) { c.wanted = &p })
	s.enqueue(p.Claim, allocator.MaxRequestTime) // then it is forgotten if the request had no result
}

// popWanted returns the policy for creating a claim, and forgets it.
func (s *States) popWanted(name string) (p workload.Policy, ok bool) {
	s.change(name, func(c *state) {
		if ok = c.wanted != nil; ok {
			p, c.wanted = *c.wanted, nil
		}
	})
	return p, ok
}

// there records that a claim exists. The policy for creating it is forgotten, unless the claim is being deleted.
func (s *States) there(c claim.Claim) {
	s.change(c.Name, func(of *state) {
		if of.unclaimed = (time.Time{}); !c.Deleting {
			of.wanted = nil
		}
	})
}

// absent records that a claim does not exist. It returns the time at which this was first seen while the claim kept
// addresses that no pod had yet.
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

// workloadGone records that the workload of a claim was seen not to exist, and reports whether it is gone permanently.
func (s *States) workloadGone(name string, kind bool) (lasts bool) {
	s.change(name, func(c *state) {
		c.gone = c.gone.seenAgain(time.Now(), kind)
		if lasts = c.gone.lasts(); lasts {
			c.gone = goneSince{}
		}
	})
	return lasts
}

// notePreallocation records the outcome of a preallocation, and returns the error if it lasts.
func (s *States) notePreallocation(name string, err error) (shown *failure) {
	s.change(name, func(c *state) { c.taking = c.taking.next(err); shown = c.taking.shown })
	return shown
}

// noteNeed records the outcome of reading the needs of a claim's workload, and returns the error if it lasts.
func (s *States) noteNeed(name string, err error) (shown *failure) {
	s.change(name, func(c *state) { c.asking = c.asking.next(err); shown = c.asking.shown })
	return shown
}

// forget removes the data from the object of a claim that no longer exists. Data for creating the claim again stays.
func (s *States) forget(name string) {
	s.remember(name, workload.Workload{})
	s.rivals(name, nil)
	s.notePreallocation(name, nil)
	s.noteNeed(name, nil)
}

package claim

import (
	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
)

// rivals records the addresses that a claim names, nil for any, and returns the other claims that name some of them. If
// the overlap has changed, it queues the claims that overlapped before or do now.
func (s *States) rivals(name string, now *netipx.IPSet) map[string]*netipx.IPSet {
	s.mu.Lock()
	before := s.naming.set(name, now)
	rivals, met := s.naming.sharing(name, now), []string{}
	if (before == nil) != (now == nil) || before != nil && !before.Equal(now) {
		for other := range rivals {
			met = append(met, other)
		}
		for other := range s.naming.sharing(name, before) {
			if rivals[other] == nil {
				met = append(met, other)
			}
		}
	}
	s.mu.Unlock()
	s.enqueueAll(met)
	return rivals
}

// learn records the addresses that all claims name, at the beginning of a term.
func (s *States) learn(all []v1.BCSNetIPClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.naming = newNaming()
	for i := range all {
		if c, err := claim.FromObject(&all[i]); err == nil && c.Addresses != nil && !c.Deleting {
			s.naming.set(c.Name, c.Addresses)
		}
	}
}

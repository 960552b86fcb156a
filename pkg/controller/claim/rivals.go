package claim

import (
	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
)

// names notes which addresses a claim names, nil for any. The caller holds the lock.
func (s *States) names(name string, now *netipx.IPSet) {
	if s.naming.Delete(name); now != nil {
		s.naming.Insert(name)
	}
	s.changeLocked(name, func(c *state) { c.named = now })
}

// rivals notes which addresses a claim names, nil for any, and returns the other claims that name some of them. Where
// that has changed, it has the claims reconciled that this one met or meets.
func (s *States) rivals(name string, now *netipx.IPSet) map[string]*netipx.IPSet {
	s.mu.Lock()
	var before *netipx.IPSet
	if c := s.claims[name]; c != nil {
		before = c.named
	}
	s.names(name, now)
	changed := (before == nil) != (now == nil) || before != nil && !before.Equal(now)
	rivals, met := map[string]*netipx.IPSet{}, []string{}
	for other := range s.naming {
		if other == name {
			continue
		}
		set := s.claims[other].named
		if now != nil && now.Overlaps(set) {
			rivals[other] = set
		}
		if changed && (now != nil && now.Overlaps(set) || before != nil && before.Overlaps(set)) {
			met = append(met, other)
		}
	}
	s.mu.Unlock()
	s.enqueueAll(met)
	return rivals
}

// learn notes which addresses all claims name, at the beginning of a term.
func (s *States) learn(all []v1.BCSNetIPClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.naming {
		s.names(name, nil)
	}
	for i := range all {
		if c, err := claim.FromObject(&all[i]); err == nil && c.Addresses != nil && !c.Deleting {
			s.names(c.Name, c.Addresses)
		}
	}
}

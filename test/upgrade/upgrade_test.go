package upgrade

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

func objectName(addr string) string { return ipaddr.ObjectName(netip.MustParseAddr(addr)) }

// TestUpgrade goes from the release before this one to this one and back, one replica after the other, while plugins
// add and delete. The definitions of this release stay.
func TestUpgrade(t *testing.T) {
	s := newSite(t)
	h := s.hold()
	tr := s.traffic()
	operations := long(400, 60)
	step := func(what string) {
		t.Helper()
		tr.goesOn(operations)
		h.check(what)
	}
	step("before")
	for round := range long(3, 1) {
		s.definitions(s.now)
		step("definitions of this release")
		s.rights(s.now)
		step("roles of this release")
		for i := range s.replicas {
			s.run(i, s.now)
			step(fmt.Sprintf("round %d: %d replicas of this release", round, i+1))
		}
		s.rights(s.old)
		step("roles of the release before")
		for i := range s.replicas {
			s.run(i, s.old)
			step(fmt.Sprintf("round %d: %d replicas of the release before", round, i+1))
		}
	}
	tr.judge()
}

package upgrade

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/test/previous"
)

func objectName(addr string) string { return ipaddr.ObjectName(netip.MustParseAddr(addr)) }

// TestUpgrade goes from the release before this one to this one and back, and to this one again, one replica after the
// other, while plugins add and delete. The definitions of this release stay.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	s := newSite(t, cluster)
	h := s.hold()
	tr := s.traffic()
	s.namespace("plugin", 0, subnet(6, 20))
	s.pools("plugin")
	check, steps := h.check, 0
	step := func(what string) {
		t.Helper()
		tr.goesOn(long(400, 20))
		check(what)
		s.plugin(what, steps)
		steps++
	}
	move := func(r previous.Release) {
		t.Helper()
		s.rights(r)
		step("roles of " + r.Name)
		for i := range s.replicas {
			s.run(i, r)
			step(fmt.Sprintf("%d replicas of %s", i+1, r.Name))
		}
	}
	step("before")
	s.definitions(s.now)
	step("definitions of this release")
	move(s.now)
	check = h.news().check
	step("with what only this release knows")
	for range long(3, 1) {
		move(s.old)
		move(s.now)
	}
	tr.judge()
}

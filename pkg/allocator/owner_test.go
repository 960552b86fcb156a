package allocator

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// heldBy are the Active addresses of a pool on the API server, with what they are held for.
func (s site) heldBy(t *testing.T, r *replica) map[netip.Addr]lease.Holder {
	t.Helper()
	out := map[netip.Addr]lease.Holder{}
	for a := range s.held(t) {
		out[a] = r.lease(a).Holder
	}
	return out
}

// Rule 6 for owners: an ADD that waits in the socket of a stopped replica is overtaken by the DEL that another one
// serves. What it commits later is released, and nobody else ever would: leases of owners are not collected.
func TestDelOfAnOwnerAtAnotherReplica(t *testing.T) {
	lately := ago()
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprintf("times told %v", told), func(t *testing.T) {
			s := newSite("9-12")
			one, stopped := newReplica(t, s.pool), newReplica(t, s.pool)
			request := s.vm("paused")
			d := del(request)
			if told {
				request.StartedAt, d.StartedAt = lately(1), lately(2)
			}
			gate := intercept.NewGate()
			stopped.tap.On(writes, gate.Hold)
			done := stopped.adding(t.Context(), request)
			<-gate.Arrived()
			if got := one.del(d); len(got) != 0 {
				t.Fatalf("released %v of what is not stored", got)
			}
			gate.Open()
			<-done // it knows of no DEL: that it is answered is right, and that it does not last
			controlplane.Until(t, "the lease is released", func() bool { return len(s.held(t)) == 0 })
			one.picture(s, nil)
			if told {
				_, err := one.Allocate(t.Context(), request)
				refused(t, err, ipam.ReasonContainerDeleted, "owner "+request.Owner)
			}
			request.StartedAt = time.Time{}
			one.one(request)
		})
	}
}

// An owner asks again after its DEL, and the replica that served the DEL knows its first lease only then: the
// address that was answered last stays.
func TestOwnerIsBackBeforeItsDelIsKnown(t *testing.T) {
	lately := ago()
	s := newSite("9-12")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	request := s.vm("back")
	two.watch.Shut()
	request.StartedAt = lately(1)
	a := one.one(request)
	two.del(ReleaseRequest{Owner: request.Owner, StartedAt: lately(2)})
	request.StartedAt = lately(3)
	if got := one.one(request); got != a {
		t.Fatalf("%s, want %s, which it has still", got, a)
	}
	two.watch.Open()
	fence := two.one(s.vm("fence")) // what the watch brought was looked at
	got := s.heldBy(t, one)
	if l := got[a]; len(got) != 2 || l.Owner != request.Owner || !l.StartedAt.Equal(request.StartedAt) {
		t.Errorf("held: %v, want %s as of %s, and %s", got, a, request.StartedAt, fence)
	}
}

// The other way round: the lease is released before the owner is back, and is not answered from memory.
func TestOwnerIsBackAfterItsDelIsKnown(t *testing.T) {
	lately := ago()
	s := newSite("9")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	request := s.vm("back")
	request.StartedAt = lately(1)
	a := one.one(request)
	two.picture(s, map[netip.Addr]string{a: ""})
	// The renewal is held back until the address is released.
	gate := intercept.NewGate()
	remove := one.tap.On(writes, gate.Hold)
	again := request
	again.StartedAt = lately(3)
	done := one.adding(t.Context(), again)
	<-gate.Arrived()
	remove()
	if got := two.del(ReleaseRequest{Owner: request.Owner, StartedAt: lately(2)}); len(got) != 1 {
		t.Fatalf("released %v", got)
	}
	gate.Open()
	if got := <-done; got.err != nil || len(got.addrs) != 1 {
		t.Fatalf("got %v, %v", got.addrs, got.err)
	}
	if l := s.heldBy(t, one)[a]; l.Owner != request.Owner || !l.StartedAt.Equal(again.StartedAt) {
		t.Errorf("stored: %+v", l)
	}
}

// A DEL is remembered for what it is about: an owner's interface, network and container.
func TestMarksOfOwners(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	leased := func(owner, container, ifName string) lease.Holder {
		return lease.Holder{Owner: owner, ContainerID: container, IfName: ifName, StartedAt: began}
	}
	for what, test := range map[string]struct {
		del     ReleaseRequest
		holder  lease.Holder
		network string
		want    bool
	}{
		"all of it":                  {ReleaseRequest{Owner: "vm"}, leased("vm", "", "eth0"), "lan", true},
		"in a container":             {ReleaseRequest{Owner: "vm"}, leased("vm", "c", "eth0"), "lan", true},
		"its interface":              {ReleaseRequest{Owner: "vm", IfName: "eth0"}, leased("vm", "", "eth0"), "", true},
		"another interface":          {ReleaseRequest{Owner: "vm", IfName: "eth1"}, leased("vm", "", "eth0"), "", false},
		"its network":                {ReleaseRequest{Owner: "vm", Network: "lan"}, leased("vm", "", "eth0"), "lan", true},
		"another network":            {ReleaseRequest{Owner: "vm", Network: "san"}, leased("vm", "", "eth0"), "lan", false},
		"a container's network":      {ReleaseRequest{ContainerID: "c", Network: "san"}, leased("", "c", "eth0"), "lan", false},
		"its container":              {ReleaseRequest{Owner: "vm", ContainerID: "c"}, leased("vm", "c", "eth0"), "", true},
		"another container":          {ReleaseRequest{Owner: "vm", ContainerID: "c"}, leased("vm", "d", "eth0"), "", false},
		"the container not told":     {ReleaseRequest{Owner: "vm", ContainerID: "c"}, leased("vm", "", "eth0"), "", true},
		"another owner":              {ReleaseRequest{Owner: "vm"}, leased("mv", "", "eth0"), "", false},
		"a container of that name":   {ReleaseRequest{Owner: "vm"}, leased("", "vm", "eth0"), "", false},
		"a pod's DEL without either": {ReleaseRequest{PodUID: "u"}, leased("", "", "eth0"), "", false},
	} {
		m := newTombstones(func() time.Time { return began })
		m.put(test.del, begun(began))
		if got := m.overtook(test.holder, test.network, begun(test.holder.StartedAt)); got != test.want {
			t.Errorf("%s: %v, want %v", what, got, test.want)
		}
		test.holder.StartedAt = began.Add(1)
		if m.overtook(test.holder, test.network, begun(test.holder.StartedAt)) {
			t.Errorf("%s: an ADD that began later is overtaken", what)
		}
	}
}

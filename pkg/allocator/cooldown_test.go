package allocator

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// cooling is a site whose addresses rest.
func cooling(d time.Duration, addresses ...string) site {
	s := newSite(addresses...)
	s.pool.Spec.Cooldown = &metav1.Duration{Duration: d}
	return s
}

// off is a clock that is wrong by so much.
func off(by time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(by) } }

// knows waits until a replica's index shows an address as given up.
func (r *replica) knows(a netip.Addr, version uint64) {
	r.t.Helper()
	controlplane.Until(r.t, "the replica knows of the release", func() bool {
		l, ok := r.index.Leases.Get(a)
		return ok && l.Version >= version && l.State == lease.Available
	})
}

// Rule 3: an address that one replica released rests at every other, whatever their clocks say, also after a
// restart, and however it was released.
func TestCooldownAtReplicasWithWrongClocks(t *testing.T) {
	for what, release := range map[string]func(r *replica, s site, request Request, a netip.Addr) error{
		"DEL": func(r *replica, _ site, request Request, _ netip.Addr) error {
			_, err := r.Release(r.t.Context(), del(request))
			return err
		},
		"host release": func(r *replica, s site, _ Request, _ netip.Addr) error {
			_, err := ReleaseHost(r.t.Context(), r.leases, s.host, time.Now(),
				lease.Change{Verb: lease.VerbReleaseHost, By: "ann"})
			return err
		},
		"by address": func(r *replica, _ site, request Request, a netip.Addr) error {
			_, _, err := r.ReleaseAddress(r.t.Context(), a, "", request.Owner, nil)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := cooling(time.Hour, "9")
			right := newReplica(t, s.pool)
			ahead, behind := newReplicaBy(t, off(5*time.Hour), s.pool), newReplicaBy(t, off(-5*time.Hour), s.pool)
			for n, by := range []*replica{right, ahead, behind} {
				holder := s.vm(fmt.Sprint("holder", n))
				holder.Addrs = []netip.Addr{s.addr(9)}
				if n > 0 { // it rests, and goes on with the cooldown taken away
					for _, r := range []*replica{right, ahead, behind} {
						p := poolOf(t, s.pool)
						p.Cooldown = 0
						r.index.Pools.SetPool(p)
					}
				}
				a := by.one(holder)
				for _, r := range []*replica{right, ahead, behind} {
					r.index.Pools.SetPool(poolOf(t, s.pool))
				}
				if err := release(by, s, holder, a); err != nil {
					t.Fatal(err)
				}
				version := by.lease(a).Version
				for _, r := range []*replica{
					right, ahead, behind, newReplica(t, s.pool), newReplicaBy(t, off(48*time.Hour), s.pool),
				} {
					r.knows(a, version)
					if ends := r.index.Pools.Counts(s.pool.Name, time.Now()).NextFree; time.Until(ends).Round(time.Hour) != time.Hour {
						t.Errorf("it rests until %s: the clock of who released it counts", ends)
					}
					_, err := r.Allocate(t.Context(), s.vm("next"))
					refused(t, err, ipam.ReasonPoolExhausted, "1 is cooling and free in ")
					named := s.vm("named")
					named.Addrs = []netip.Addr{a}
					_, err = r.Allocate(t.Context(), named)
					refused(t, err, ipam.ReasonAddressCooling, "after "+holder.Owner)
				}
			}
		})
	}
}

// Rule 3: a replica that has not heard of the release, or not even that the address was ever used, cannot
// hand it out early: its write meets another version.
func TestCooldownAtAReplicaThatLagsBehind(t *testing.T) {
	s := cooling(time.Hour, "9")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	s.materialize(t, one)
	controlplane.Until(t, "the other replica knows", func() bool { return len(two.index.Leases.ByPool(s.pool.Name)) == 1 })
	two.watch.Shut()
	defer two.watch.Open()
	holder := s.vm("holder")
	one.one(holder)
	one.del(del(holder))
	_, err := two.Allocate(t.Context(), s.vm("next"))
	refused(t, err, ipam.ReasonPoolExhausted, "1 is cooling")
}

// The address is handed out when it has rested, and no earlier by the times that are stored.
func TestCooldownEnds(t *testing.T) {
	const rest = 3 * time.Second
	s := cooling(rest, "9")
	one, two := newReplica(t, s.pool), newReplicaBy(t, off(5*time.Hour), s.pool)
	holder := s.vm("holder")
	a := one.one(holder)
	one.del(del(holder))
	released := one.lease(a)
	two.knows(a, released.Version)
	next := s.vm("next")
	controlplane.Until(t, "the address has rested", func() bool {
		got, err := two.Allocate(t.Context(), next)
		if err != nil {
			refused(t, err, ipam.ReasonPoolExhausted)
		}
		return len(got) == 1
	})
	// The API server tells its time in whole seconds, so a replica with a wrong clock is right to a second
	// and the time of an answer.
	if after := one.lease(a).Updated.Sub(released.Updated); after < rest-2*time.Second {
		t.Errorf("handed out again after %s", after)
	}
}

// A pod whose container ends and comes back, as when its node restarts, has its address at once, also by a replica that
// knows of it from the objects alone. Everybody else waits.
func TestCooldownAndTheLastHolder(t *testing.T) {
	s := cooling(time.Hour, "9")
	r := newReplica(t, s.pool)
	p, other := newPod(t, "rested-cool", s.host, r), newPod(t, "rested-other", s.host, r)
	a := r.one(s.of(p, "rested-c1"))
	r.del(del(s.of(p, "rested-c1")))
	_, err := r.Allocate(t.Context(), s.of(other, "rested-o1"))
	refused(t, err, ipam.ReasonPoolExhausted, "1 is cooling and free in ")
	if got := r.one(s.of(p, "rested-c2")); got != a {
		t.Errorf("got %s, want %s", got, a)
	}
	r.del(del(s.of(p, "rested-c2")))
	version := r.lease(a).Version
	late := newReplica(t, s.pool)
	late.knows(a, version)
	late.sees(p)
	if got := late.one(s.of(p, "rested-c3")); got != a {
		t.Errorf("by a replica that has just begun: got %s, want %s", got, a)
	}
	late.del(del(s.of(p, "rested-c3")))
	named := s.of(other, "rested-o2")
	named.Addrs = []netip.Addr{a}
	r.knows(a, late.lease(a).Version)
	_, err = r.Allocate(t.Context(), named)
	refused(t, err, ipam.ReasonAddressCooling, "after "+p.Namespace+"/"+p.Name)
}

// An address that was reserved and unreserved without having been used does not rest.
func TestUnreservedAddressDoesNotRest(t *testing.T) {
	s := cooling(time.Hour, "9")
	r := newReplica(t, s.pool)
	p := poolOf(t, s.pool)
	c := lease.Change{Verb: lease.VerbReserve, By: "ann"}
	l, reserved, err := ReserveLease(t.Context(), r.leases, lease.Lease{Addr: s.addr(9)}, p.Params(), c)
	if err != nil || !reserved {
		t.Fatal(reserved, err)
	}
	c.Verb = lease.VerbUnreserve
	if _, err := ReleaseLease(t.Context(), r.leases, l, c, func(lease.Lease) bool { return false }); err != nil {
		t.Fatal(err)
	}
	r.knows(s.addr(9), l.Version+1)
	r.one(s.vm("next"))
}

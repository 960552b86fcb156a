package allocator

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// byHand is the request of an operator for an owner on no host.
func (s site) byHand(name string) Request {
	return Request{Owner: name + "-" + s.pool.Name, Pool: s.pool.Name}
}

// An operator gets an address of the pool that is named, whichever hosts and namespaces it is for, and the
// same one again.
func TestAllocatedByHand(t *testing.T) {
	s, other := newSite("9"), newSite("9-12")
	s.pool.Spec.Hosts, s.pool.Spec.Namespaces = nil, []string{"payments"}
	r := newReplica(t, s.pool, other.pool)
	request := s.byHand("vm")
	if got := r.one(request); got != s.addr(9) {
		t.Fatalf("got %s", got)
	}
	r.tap.Forget()
	if got := r.one(request); got != s.addr(9) {
		t.Errorf("again: got %s", got)
	}
	r.cost("a repeated request", 1, 1)
	if l := r.lease(s.addr(9)); l.Host.IsValid() || l.Owner != request.Owner || l.State != lease.Active {
		t.Errorf("stored: %+v", l)
	}
	_, err := r.Allocate(t.Context(), s.byHand("late"))
	refused(t, err, ipam.ReasonPoolExhausted, s.pool.Name)
	elsewhere := request
	elsewhere.Pool = other.pool.Name
	_, err = r.Allocate(t.Context(), elsewhere)
	refused(t, err, ipam.ReasonContainerHoldsOther, s.addr(9).String(), s.pool.Name)
	elsewhere.Pool, elsewhere.Owner = "nowhere", "vm-nowhere"
	_, err = r.Allocate(t.Context(), elsewhere)
	refused(t, err, ipam.ReasonNotFound, "nowhere")
}

// Two processes that are asked for one name at once agree on one address.
func TestAllocatedByHandTwiceAtOnce(t *testing.T) {
	s := newSite("9-28")
	s.pool.Spec.Hosts = nil
	rs := []*replica{newReplica(t, s.pool), newReplica(t, s.pool), newReplica(t, s.pool)}
	for i := range 8 {
		request := s.byHand(fmt.Sprint("vm", i))
		got := make([]netip.Addr, len(rs))
		var wg sync.WaitGroup
		for n, r := range rs {
			wg.Go(func() {
				if a, err := r.Allocate(t.Context(), request); err != nil {
					t.Error(err)
				} else {
					got[n] = a[0].Addr
				}
			})
		}
		wg.Wait()
		if len(slices.Compact(got)) != 1 {
			t.Fatalf("%s: the answers are %v", request.Owner, got)
		}
	}
	if held := s.held(t); len(held) != 8 {
		t.Errorf("held: %v", held)
	}
}

// A proposal is what would be given, writes nothing and keeps nothing back.
func TestPropose(t *testing.T) {
	s := newSite("9")
	r := newReplica(t, s.pool)
	request := s.byHand("vm")
	for range 2 {
		held, free, err := r.Propose(t.Context(), request)
		if err != nil || len(held) != 0 || len(free) != 1 || free[0].Addr != s.addr(9) || free[0].Owner != request.Owner {
			t.Fatalf("held %v, free %v, %v", held, free, err)
		}
	}
	if held := s.held(t); len(held) != 0 {
		t.Fatalf("held: %v", held)
	}
	r.one(request)
	held, free, err := r.Propose(t.Context(), request)
	if err != nil || len(held) != 1 || held[0].Addr != s.addr(9) || len(free) != 0 {
		t.Errorf("held %v, free %v, %v", held, free, err)
	}
	_, _, err = r.Propose(t.Context(), s.byHand("late"))
	refused(t, err, ipam.ReasonPoolExhausted)
}

// A reservation goes through when the address changed and is free, and leaves it alone when somebody has it.
func TestReserveLease(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	params := poolOf(t, s.pool).Params()
	change := lease.Change{Verb: lease.VerbReserve, By: "ann", Reason: "printer"}
	free := func(n int) lease.Lease { return lease.Lease{Addr: s.addr(n)} }

	now, reserved, err := ReserveLease(t.Context(), r.leases, free(9), params, change)
	if err != nil || !reserved || now.State != lease.Reserved || now.Pool != s.pool.Name {
		t.Fatalf("%+v, %v, %v", now, reserved, err)
	}
	if h := now.History.Entries(); len(h) != 1 || h[0].Change != change {
		t.Errorf("history: %+v", h)
	}
	now, reserved, err = ReserveLease(t.Context(), r.leases, free(9), params, change)
	if err != nil || reserved || now.State != lease.Reserved {
		t.Errorf("again: %+v, %v, %v", now, reserved, err)
	}

	// Taken by somebody, and given back by somebody, since it was read.
	vm := s.vm("taken")
	vm.Addrs = []netip.Addr{s.addr(10)}
	r.one(vm)
	now, reserved, err = ReserveLease(t.Context(), r.leases, free(10), params, change)
	if err != nil || reserved || now.Owner != vm.Owner {
		t.Errorf("held: %+v, %v, %v", now, reserved, err)
	}
	r.del(del(vm))
	if now, reserved, err = ReserveLease(t.Context(), r.leases, free(10), params, change); err != nil || !reserved {
		t.Errorf("given back: %+v, %v, %v", now, reserved, err)
	}
	if _, err := r.leases.Get(t.Context(), s.addr(11)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an address that nobody asked for: %v", err)
	}
}

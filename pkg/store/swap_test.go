package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Whoever swaps a lease that has changed meanwhile finds in the index what is there.
func TestSwapRefetches(t *testing.T) {
	index, addr := index.New(), subnet()
	c, other := connectTo(t, config(t, nil), index), connect(t, nil)
	first := write(t, c, active(t, available(addr(1)), "first"))
	next := first
	next.ContainerID = "next"
	faster := first
	faster.ContainerID = "faster"
	faster = write(t, other, faster)
	if _, err := c.Swap(t.Context(), first, next); !errors.Is(err, ErrConflict) {
		t.Fatalf("%v, want ErrConflict", err)
	}
	if l, _ := index.Leases.Get(addr(1)); l.Version != faster.Version || l.ContainerID != "faster" {
		t.Errorf("the index has %+v", l)
	}
	next = faster
	next.ContainerID = "next"
	if l, err := c.Swap(t.Context(), faster, next); err != nil || l.ContainerID != "next" {
		t.Errorf("%+v, %v", l, err)
	}
}

// An update of a lease that has changed meanwhile is decided again on what is there, where that is wanted.
func TestUpdate(t *testing.T) {
	c, addr := connect(t, nil), subnet()
	yes := func(lease.Lease) bool { return true }
	next := func(l lease.Lease) (lease.Lease, bool) { l.ContainerID = "next"; return l, true }
	stale := func(n int) (lease.Lease, lease.Lease) {
		first := write(t, c, active(t, available(addr(n)), "first"))
		faster := first
		faster.ContainerID = "faster"
		return first, write(t, c, faster)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var expired *ExpiredError
	for what, test := range map[string]struct {
		n      int
		change func(lease.Lease) (lease.Lease, bool)
		again  func(lease.Lease) bool
		stored bool
		want   string
		failed func(error) bool
	}{
		"again": {n: 1, change: next, again: yes, stored: true, want: "next"},
		"not again": {n: 2, change: next, again: func(l lease.Lease) bool { return l.ContainerID != "faster" },
			want: "faster"},
		"nothing to do": {n: 3, change: func(l lease.Lease) (lease.Lease, bool) { return l, false }, again: yes,
			want: "first"},
		"out of time": {n: 4, change: next, again: func(lease.Lease) bool { cancel(); return true }, want: "faster",
			failed: func(err error) bool { return errors.As(err, &expired) }},
		"always too late": {n: 5, change: func(l lease.Lease) (lease.Lease, bool) { l.Version--; return l, true },
			again: yes, want: "faster", failed: func(err error) bool { return errors.Is(err, ErrContended) }},
	} {
		t.Run(what, func(t *testing.T) {
			in := t.Context()
			if what == "out of time" {
				in = ctx
			}
			first, _ := stale(test.n)
			l, stored, err := c.Update(in, first, test.change, test.again)
			if failed := err != nil; failed != (test.failed != nil) || failed && !test.failed(err) ||
				stored != test.stored ||
				l.ContainerID != test.want {
				t.Errorf("%s, stored: %t, %v; want %s, %t", l.ContainerID, stored, err, test.want, test.stored)
			}
		})
	}
}

// TestUpdateAfterARestore: a client without an index reads what it changes. What it read before may have been another
// write of the same version, of a store that was put back since.
func TestUpdateAfterARestore(t *testing.T) {
	c, addr := connect(t, nil), subnet()
	l := write(t, c, active(t, available(addr(1)), "one that runs"))
	before := l // as a command saw it
	before.ContainerID, before.PodUID, before.Updated = "an earlier one", "an earlier pod", l.Updated.Add(-time.Hour)
	release := func(l lease.Lease) (lease.Lease, bool) { return lease.Release(l, time.Now(), lease.Change{}) }
	now, stored, err := c.Update(t.Context(), before, release, before.SameHolding)
	if err != nil || stored || now.ContainerID != l.ContainerID {
		t.Errorf("released %t, %v: %+v", stored, err, now)
	}
	if _, stored, err := c.Update(t.Context(), l, release, l.SameHolding); err != nil || !stored {
		t.Errorf("as it was read: released %t, %v", stored, err)
	}
}

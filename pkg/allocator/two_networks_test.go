package allocator

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// Rule 5: two replicas that serve one container at once, for whose host there are pools of two families in two
// networks, from different pictures: one network, the same everywhere, of which the address was written first.
func TestOneContainerInTwoNetworks(t *testing.T) {
	for what, ipv6First := range map[string]bool{"ipv6-first": true, "ipv4-first": false} {
		t.Run(what, func(t *testing.T) {
			a, b := newSite("9"), newSite()
			a.pool.Spec.Network = "blue"
			number := b.addr(0).As4()
			prefix := fmt.Sprintf("fd00:%x:%x::", number[1], number[2])
			b.pool.Spec = v1.BCSNetPoolSpec{
				Network: "green", Net: prefix, Mask: 64, Gateway: prefix + "1", AvailableIPs: []string{prefix + "9"},
				Hosts: a.pool.Spec.Hosts, Materialize: v1.MaterializeOnDemand,
			}
			one, two := newReplica(t, a.pool, b.pool), newReplica(t, a.pool, b.pool)
			p := newPod(t, "networks-"+what, a.host, one, two)
			request := a.of(p, p.Name+"-c")
			one.watch.Shut()
			two.watch.Shut()
			first, second := one, two
			if !ipv6First {
				first, second = two, one
			}
			one.index.MarkUnknown(a.addr(9), 0, "nobody", one.leases.Now()) // by its picture IPv4 is not to be had
			count := func() int { return len(a.held(t)) + len(b.held(t)) }
			answers := []<-chan outcome{first.adding(t.Context(), request)}
			controlplane.Until(t, "the first is stored", func() bool { return count() == 1 })
			want := addressesOf(a.held(t), b.held(t))
			answers = append(answers, second.adding(t.Context(), request))
			controlplane.Until(t, "the second is stored", func() bool { return count() == 2 })
			one.index.Forget(a.addr(9))
			one.watch.Open()
			two.watch.Open()
			for n, answer := range answers {
				if got := <-answer; got.err != nil || cmp.Diff(want, got.addrs, compareAddrs) != "" {
					t.Errorf("request %d is answered %v, %v; want %v", n, got.addrs, got.err, want)
				}
			}
			for _, r := range []*replica{one, two} {
				if got := r.add(request); cmp.Diff(want, got, compareAddrs) != "" {
					t.Errorf("again: %v, want %v", got, want)
				}
			}
			if held := addressesOf(a.held(t), b.held(t)); cmp.Diff(want, held, compareAddrs) != "" {
				t.Errorf("held: %v, want %v", held, want)
			}
		})
	}
}

func addressesOf(held ...map[netip.Addr]string) (out []netip.Addr) {
	for _, h := range held {
		for a := range h {
			out = append(out, a)
		}
	}
	return out
}

// An address that was made again from what a pod reports may be of another interface than those that are known: it is
// no second one of any of them, nor are they of it.
func TestUnknownInterfaceIsNoDuplicate(t *testing.T) {
	x := index.New()
	known := lease.Lease{
		Addr: netip.MustParseAddr("10.9.0.1"), Version: 1, State: lease.Active, Params: lease.Params{Pool: "p"},
		Holder: lease.Holder{Namespace: "default", PodName: "web", PodUID: "u1", IfName: "eth0", ContainerID: "c1"},
	}
	unknown := known
	unknown.Addr, unknown.Version, unknown.ContainerID, unknown.IfName = netip.MustParseAddr("10.9.0.2"), 2, "", ""
	second := known
	second.Addr, second.Version, second.PodUID = netip.MustParseAddr("10.9.0.3"), 3, "u2"
	third := second
	third.Addr, third.Version = netip.MustParseAddr("10.9.0.4"), 4
	a := &Repairer{engine: &engine{index: x}}
	for _, l := range []lease.Lease{known, unknown, second, third} {
		x.Feed.Watched(l)
	}
	for l, want := range map[*lease.Lease]bool{&known: false, &unknown: false, &second: true, &third: true} {
		if got := a.isDuplicate(*l); got != want {
			t.Errorf("%s on %q is a duplicate: %t, want %t", l.Addr, l.IfName, got, want)
		}
	}
}

// Rule 5: a replica whose watch is behind knows of what another one did in part, from reads and its own writes. The set
// that is whole by that picture is not the one that was whole first. Until the watch has come so far, the replica
// refuses or answers with the first set; it frees nothing of that one.
func TestPartOfTheFirstSetIsNotSeen(t *testing.T) {
	a, b, c := newSite("9"), newSite(), newSite()
	for s, network := range map[*site]string{&b: "blue", &c: "green"} {
		number := s.addr(0).As4()
		prefix := fmt.Sprintf("fd00:%x:%x::", number[1], number[2])
		s.pool.Spec = v1.BCSNetPoolSpec{
			Network: network, Net: prefix, Mask: 64, Gateway: prefix + "1", AvailableIPs: []string{prefix + "9"},
			Hosts: a.pool.Spec.Hosts, Materialize: v1.MaterializeOnDemand,
		}
	}
	a.pool.Spec.Network, a.pool.Spec.Priority, b.pool.Spec.Priority = "blue", 1, 1
	one, two := newReplica(t, a.pool, b.pool, c.pool), newReplica(t, a.pool, b.pool, c.pool)
	p := newPod(t, "part", a.host, one, two)
	request := a.of(p, "part-c")
	two.watch.Shut()
	want := one.add(request)
	if len(want) != 2 {
		t.Fatalf("got %v, want two addresses of one network", want)
	}
	two.index.MarkUnknown(a.addr(9), 0, "nobody", two.leases.Now()) // by its picture IPv4 is not to be had
	ctx, leave := context.WithCancel(t.Context())
	answer := two.adding(ctx, request)
	controlplane.Until(t, "the second set is stored", func() bool { return len(c.held(t)) == 1 })
	leave()
	<-answer
	two.index.Forget(a.addr(9))
	read, _ := one.index.Leases.Get(a.addr(9))
	two.index.Feed.Wrote(read) // as after a conflict

	ctx, leave = context.WithTimeout(t.Context(), time.Second)
	defer leave()
	got := <-two.adding(ctx, request)
	if got.err != nil {
		refused(t, got.err, ipam.ReasonOutcomeUnknown)
	} else if cmp.Diff(want, got.addrs, compareAddrs) != "" { // on a slow machine the question itself brought the rest
		t.Errorf("it answers %v, want %v", got.addrs, want)
	}
	if held := addressesOf(a.held(t), b.held(t)); len(held) != 2 {
		t.Fatalf("held of what was answered: %v, want %v", held, want)
	}
	two.watch.Open()
	for n, r := range []*replica{two, one} {
		if got := r.add(request); cmp.Diff(want, got, compareAddrs) != "" {
			t.Errorf("replica %d answers %v, want %v", n, got, want)
		}
	}
	if held := c.held(t); len(held) != 0 {
		t.Errorf("held of the second set: %v", held)
	}
}

package allocator

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// Rule 5: a second lease of an owner goes back without another request, as nobody collects it ever. Of two containers
// the newer keeps what it was told; a lease that names none stays where it came first, and goes where it came second.
func TestSecondAddressOfAnOwner(t *testing.T) {
	for what, test := range map[string]struct {
		container string // of the first lease, which is the one that was answered
		second    func(l *lease.Lease)
	}{
		"the same container again":     {"c", func(*lease.Lease) {}},
		"an older container, late":     {"c", func(l *lease.Lease) { l.ContainerID, l.StartedAt = l.Owner+"-b", l.StartedAt.Add(-time.Second) }},
		"no container, twice":          {"", func(*lease.Lease) {}},
		"no container, and later":      {"c", func(l *lease.Lease) { l.ContainerID, l.StartedAt = "", l.StartedAt.Add(time.Second) }},
		"a container after none":       {"", func(l *lease.Lease) { l.ContainerID, l.StartedAt = l.Owner+"-c", l.StartedAt.Add(time.Second) }},
		"an old container, after none": {"", func(l *lease.Lease) { l.ContainerID, l.StartedAt = l.Owner+"-b", l.StartedAt.Add(-time.Second) }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel() // each waits, and has addresses of its own
			s := newSite("9-12")
			one := newReplica(t, s.pool)
			request := s.vm("second")
			if test.container != "" {
				request.ContainerID = request.Owner + "-" + test.container
			}
			told := one.one(request)
			one.beside(s, one.lease(told), test.second)
			controlplane.Until(t, "one address is held", func() bool { return len(s.held(t)) == 1 })
			if got := settled(t, s, request, one); got != told {
				t.Errorf("%s is held, want %s, which was answered", got, told)
			}
		})
	}
}

// Two replicas serve an owner at once, without a container at one and with one at the other: both are answered what was
// stored first, and nothing is left over.
func TestOwnerWithAndWithoutAContainer(t *testing.T) {
	for _, bareFirst := range []bool{true, false} {
		t.Run(fmt.Sprintf("without first %v", bareFirst), func(t *testing.T) {
			s := newSite("9-12")
			one, two := newReplica(t, s.pool), newReplica(t, s.pool)
			first, second := s.vm("both"), s.vm("both")
			if second.ContainerID = second.Owner + "-c"; !bareFirst {
				first, second = second, first
			}
			a, _, answers, leave := apart(t, s, one, two, first, second)
			defer leave()
			one.watch.Open()
			two.watch.Open()
			for n, answer := range answers {
				if got := <-answer; got.err != nil || len(got.addrs) != 1 || got.addrs[0] != a {
					t.Errorf("request %d is answered %v, %v; want %s", n, got.addrs, got.err, a)
				}
			}
			named := first
			if named.ContainerID == "" {
				named = second
			}
			if got := settled(t, s, named, one, two); got != a {
				t.Errorf("%s is held, want %s", got, a)
			}
		})
	}
}

// What one owner holds on two interfaces, and what two owners hold, is nobody's second lease.
func TestNoSecondAddressOfAnOwner(t *testing.T) {
	x := index.New()
	leased := func(n byte, owner, ifName string) lease.Lease {
		l := lease.Lease{
			Addr: netip.AddrFrom4([4]byte{10, 9, 0, n}), Version: uint64(n), State: lease.Active,
			Params: lease.Params{Pool: "p"},
		}
		l.Owner, l.IfName = owner, ifName
		return l
	}
	a := &Repairer{engine: &engine{index: x}}
	leases := []lease.Lease{
		leased(1, "vm", "eth0"), leased(2, "vm", "eth1"), leased(3, "mv", "eth0"), leased(4, "db", "eth0"),
		leased(5, "db", "eth0"), leased(6, "db", ""),
	}
	for _, l := range leases {
		x.Feed.Watched(l)
	}
	for _, l := range leases {
		if got, want := a.isDuplicate(l), l.Owner == "db" && l.IfName != ""; got != want {
			t.Errorf("%s of %s on %q is a duplicate: %t, want %t", l.Addr, l.Owner, l.IfName, got, want)
		}
	}
}

// A lease that was made again from an old report of the pod, of another network and family than what its container has,
// is neither an answer to that container nor a reason to refuse it. It goes when the pod reports the container's
// instead.
func TestLeaseMadeAgainInAnotherNetwork(t *testing.T) {
	a, b := newSite("9"), newSite()
	a.pool.Spec.Network, a.pool.Spec.Priority = "blue", 1
	number := b.addr(0).As4()
	prefix := fmt.Sprintf("fd00:%x:%x::", number[1], number[2])
	b.pool.Spec = v1.BCSNetPoolSpec{
		Network: "green", Net: prefix, Mask: 64, Gateway: prefix + "1", AvailableIPs: []string{prefix + "9"},
		Hosts: a.pool.Spec.Hosts, Materialize: v1.MaterializeOnDemand,
	}
	one := newReplica(t, a.pool, b.pool)
	p := newPod(t, "made-again-"+b.pool.Name, a.host, one)
	request := a.of(p, p.Name+"-c")
	told := one.one(request)
	l := one.lease(told)
	l.Addr, l.Version, l.Params = netip.MustParseAddr(prefix+"9"), 0, poolOf(t, b.pool).Params()
	l.ContainerID, l.StartedAt = "", one.leases.Now().Add(time.Second)
	reports(t, p, l.Addr)
	if _, err := one.leases.Write(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := one.one(request); got != told {
			t.Errorf("the container was told %s, and then %s", told, got)
		}
	}
	if one.releaseDuplicates(t.Context()); len(b.held(t)) != 1 {
		t.Error("an address was released that its pod reports")
	}
	reports(t, p, told)
	controlplane.Until(t, "the address of the old report is released", func() bool { return len(b.held(t)) == 0 })
	settled(t, a, request, one)
}

// reports has a pod report an address.
func reports(t *testing.T, p *corev1.Pod, a netip.Addr) {
	t.Helper()
	p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, a.String(), []corev1.PodIP{{IP: a.String()}}
	if err := cluster.AdminFor(t).Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

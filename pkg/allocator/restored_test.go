package allocator

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// putBack makes an address as it is in a copy of the store that knows no holder of it, and returns the list that a
// replica reads when it notices.
func (r *replica) putBack(s site, a netip.Addr) (list []lease.Lease, version uint64) {
	r.t.Helper()
	cfg, err := identity()
	if err != nil {
		r.t.Fatal(err)
	}
	direct, err := store.New(cfg, nil, store.NewClock(nil))
	if err != nil {
		r.t.Fatal(err)
	}
	live, err := direct.Get(r.t.Context(), a)
	if err != nil {
		r.t.Fatal(err)
	}
	if live, err = direct.Write(r.t.Context(),
		lease.Lease{Addr: a, Version: live.Version, Params: live.Params}); err != nil {
		r.t.Fatal(err)
	}
	if list, err = direct.List(r.t.Context(), "spec.pool="+s.pool.Name); err != nil {
		r.t.Fatal(err)
	}
	return list, live.Version
}

// A container was told an address, the watch of another replica had not delivered that when the store was put back to a
// copy which does not know it, and the container asks there again: it is given no other address before the first
// replica has written what it knows, and the same one then.
func TestAskedAgainAfterARestore(t *testing.T) {
	s := newSite("9-12")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	s.materialize(t, one)
	controlplane.Until(t, "the other replica knows", func() bool { return len(two.index.Leases.ByPool(s.pool.Name)) == 4 })
	request := s.of(newPod(t, "asks-again-"+s.pool.Name, s.host, one, two), "c1")
	first := one.one(request)
	one.del(del(request))
	controlplane.Until(t, "the other replica knows",
		func() bool {
			l, _ := two.index.Leases.Get(first)
			return l.State == lease.Available && !l.Updated.IsZero()
		})

	request.ContainerID = "c2"
	two.watch.Shut()
	asks := request
	if asks.Addrs = []netip.Addr{s.addr(9)}; first == s.addr(9) {
		asks.Addrs[0] = s.addr(10) // another than the one that two chooses
	}
	told := one.one(asks)
	list, version := one.putBack(s, told)
	for _, r := range []*replica{one, two} {
		r.index.Feed.ResetTo(list, version)
	}
	two.watch.Open()

	_, err := two.Allocate(t.Context(), request)
	refused(t, err, ipam.ReasonUnavailable, "put back")
	l, lost := one.index.Leases.Missing(told)
	if !lost {
		t.Fatalf("%s is not lost to %s", told, request.ContainerID)
	}
	now, _ := one.index.Leases.Get(told)
	if _, err := one.leases.Write(t.Context(), lease.Restore(l, now)); err != nil {
		t.Fatal(err)
	}
	two.picture(s, map[netip.Addr]string{told: request.ContainerID})
	if again := two.one(request); again != told {
		t.Errorf("the container was told %s, and then %s", told, again)
	}
	other := s.vm("other")
	_, err = two.Allocate(t.Context(), other)
	refused(t, err, ipam.ReasonUnavailable, "put back")
	two.index.Feed.Returned()
	two.one(other)
}

// A request is under way while the store is put back: what it finds out about the version that it decided on does not
// hide from its replica what happens to the address from then on.
func TestRequestAcrossARestore(t *testing.T) {
	s := newSite("9-12")
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	const lost = 1 << 40 // versions of the store as it was
	two.index.Feed.Watched(lease.Lease{Addr: s.addr(9), Version: lost, Params: poolOf(t, s.pool).Params()})
	gate := intercept.NewGate()
	two.tap.On(intercept.All(intercept.Method(http.MethodGet), func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/"+ipaddr.ObjectName(s.addr(9)))
	}), gate.HoldStream)
	asks := s.vm("asks")
	asks.Addrs = []netip.Addr{s.addr(9)}
	answers := make(chan error, 1)
	go func() {
		_, err := two.Allocate(t.Context(), asks)
		answers <- err
	}()
	<-gate.Arrived() // there is no such object any more
	list, err := one.leases.List(t.Context(), "spec.pool="+s.pool.Name)
	if err != nil {
		t.Fatal(err)
	}
	two.index.Feed.ResetTo(list, one.index.Feed.Seen())
	gate.Open()
	refused(t, <-answers, ipam.ReasonUnavailable, "put back")

	other := s.vm("other")
	other.Addrs = asks.Addrs
	one.one(other)
	given, _ := one.index.Leases.Get(s.addr(9))
	controlplane.Until(t, "the watch has passed what the other replica wrote",
		func() bool { return two.index.Feed.Seen() >= given.Version })
	if got, _ := two.index.Leases.Get(s.addr(9)); got.Version != given.Version {
		t.Fatalf("the watch has passed version %d of %s, and the index has version %d", given.Version, s.addr(9), got.Version)
	}
	two.index.Feed.Returned()
	_, err = two.Allocate(t.Context(), asks)
	refused(t, err, ipam.ReasonAddressInUse, other.Owner)
}

// A container has released its address, and the store was put back to a copy that names it still: the next container of
// its pod does not take the address over while others may know who has it. The container of the copy is answered.
func TestMovesAfterARestore(t *testing.T) {
	for what, during := range map[string]struct{ begin, end func(*replica, []lease.Lease) }{
		"the store was put back": {
			func(r *replica, list []lease.Lease) { r.index.Feed.ResetTo(list, r.index.Feed.Seen()) },
			func(r *replica, _ []lease.Lease) { r.index.Feed.Returned() },
		},
		"the replica has just started": {
			func(r *replica, _ []lease.Lease) { r.index.Feed.SetComparing(true) },
			func(r *replica, _ []lease.Lease) { r.index.Feed.SetComparing(false) },
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite("9-12")
			r := newReplica(t, s.pool)
			request := s.of(newPod(t, "moves-"+s.pool.Name, s.host, r), "before-"+s.pool.Name)
			first := r.one(request)
			list, err := r.leases.List(t.Context(), "spec.pool="+s.pool.Name)
			if err != nil {
				t.Fatal(err)
			}
			during.begin(r, list)
			next := request
			next.ContainerID = "after-" + s.pool.Name
			_, err = r.Allocate(t.Context(), next)
			refused(t, err, ipam.ReasonUnavailable, "put back")
			if again := r.one(request); again != first {
				t.Errorf("the container of the copy was told %s, and then %s", first, again)
			}
			during.end(r, list)
			if moved := r.one(next); moved != first {
				t.Errorf("the next container was told %s, not %s", moved, first)
			}
		})
	}
}

// TestObjectWithoutItsStatus: a backup without status brought an object back with its finalizer. Nobody gets its
// address until somebody frees it: a pod may run with it.
func TestObjectWithoutItsStatus(t *testing.T) {
	s := newSite("9")
	a := s.addr(9)
	_ = newReplica(t, s.pool) // installs the kinds
	o := &v1.BCSNetIP{
		ObjectMeta: metav1.ObjectMeta{Name: ipaddr.ObjectName(a), Finalizers: []string{v1.HeldFinalizer}},
		Spec:       v1.BCSNetIPSpec{Pool: s.pool.Name, Mask: 24, Gateway: s.addr(254).String()},
	}
	if err := cluster.AdminFor(t).Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	r := newReplica(t, s.pool)
	p := newPod(t, "no-status", s.host, r)
	refused := func(request Request, why string) {
		if got, err := r.Allocate(t.Context(), request); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("ADD: %v, %v; want %q", got, err, why)
		}
	}
	refused(s.of(p, "no-status"), "1 otherwise in use")
	named := s.of(p, "no-status-named")
	named.Addrs = []netip.Addr{a}
	refused(named, "lost its record")
	anybody := func(lease.Lease) bool { return true }
	if _, err := FreeLease(t.Context(), r.leases, r.lease(a), lease.Change{}, anybody); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error {
		_, err := r.Allocate(t.Context(), s.of(p, "no-status"))
		return err
	})
}

package allocator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// mac returns a MAC that only one test knows: the reports of all tests are in one cluster.
func (s site) mac(i int) string {
	b := s.addr(i).As4()
	return fmt.Sprintf("02:42:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}

// report reports a conflict of the address that a request got.
func (r *replica) report(ctx context.Context, a netip.Addr, q Request, mac string) (Contested, error) {
	return r.ReportConflict(ctx, ConflictReport{Addr: a, ContainerID: q.ContainerID, IfName: q.IfName, MAC: mac})
}

// The holder reports: nobody gets the address, in one write, a DEL finds nothing, and the same ADD takes another. The
// same report has the same answer, from any replica, also after the ADD.
func TestConflict(t *testing.T) {
	s := newSite("9-12")
	r, other := newReplica(t, s.pool), newReplica(t, s.pool)
	q := s.by("conflict", "pods", time.Now())
	a := r.one(q)
	r.tap.Forget()
	first, err := r.report(t.Context(), a, q, s.mac(1))
	if err != nil {
		t.Fatal(err)
	}
	r.cost("report", 1, 1)
	l := r.lease(a)
	want := lease.Lease{
		Addr: a, Version: l.Version, State: lease.Reserved, Params: first.Was.Params, Updated: l.Updated,
		HeldFinalizer: true,
		Conflict: &lease.Conflict{
			MAC: s.mac(1), Host: s.host, ContainerID: q.ContainerID, At: l.Updated, Outcome: lease.ConflictQuarantined,
			Until: l.Updated.Add(time.Hour),
		},
		History: lease.NewHistory([]lease.Past{{
			Holder: q.Owner, Host: s.host, Since: first.Was.Updated, Until: l.Updated, Change: lease.Change{
				Verb: lease.VerbConflict, By: s.mac(1),
				Reason: "answered for it; nobody gets it until " + l.Updated.Add(time.Hour).UTC().Format(time.RFC3339),
			},
		}}),
	}
	if diff := cmp.Diff(want, l, compareAddrs); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := r.del(ReleaseRequest{ContainerID: "somebody else's"}); len(got) != 0 {
		t.Errorf("freed %v", got)
	}
	b := r.one(q)
	if b == a {
		t.Error("the same ADD has the same address")
	}
	for name, again := range map[string]*replica{"the same replica": r, "another": other} {
		got, err := again.report(t.Context(), a, q, s.mac(1))
		if err != nil || !got.Repeated || !got.Now.Conflict.Until.Equal(l.Conflict.Until) {
			t.Errorf("again, %s: %+v, %v", name, got, err)
		}
	}
	if got := r.del(del(q)); len(got) != 1 || got[0] != b {
		t.Errorf("the DEL freed %v, want %s", got, b)
	}
	if now := r.lease(a); now.Version != l.Version {
		t.Errorf("the DEL changed %+v", now)
	}
	_, err = r.Allocate(t.Context(), func() Request { w := s.vm("asks"); w.Addrs = []netip.Addr{a}; return w }())
	refused(t, err, ipam.ReasonAddressInUse, "quarantined", s.mac(1))
}

// Only the holder may report, and a report of it changes no other address.
func TestConflictOfOthers(t *testing.T) {
	s := newSite("9-13")
	r := newReplica(t, s.pool)
	q := s.by("holder", "pods", time.Now())
	a := r.one(q)
	p := newPod(t, "conflict-moved-"+s.pool.Name, s.host, r)
	moved := r.one(s.of(p, s.pool.Name+"-old"))
	r.one(s.of(p, s.pool.Name+"-new"))
	free := r.one(s.vm("free"))
	r.del(del(s.vm("free")))
	var aside, unused netip.Addr
	for i := 9; i <= 13; i++ {
		switch addr := s.addr(i); {
		case addr == a || addr == moved || addr == free:
		case !aside.IsValid():
			aside = addr
		default:
			unused = addr
		}
	}
	if _, ok, err := ReserveLease(t.Context(), r.leases, r.lease(aside), poolOf(t, s.pool).Params(),
		lease.Change{}); !ok {
		t.Fatal(err)
	}
	for what, test := range map[string]struct {
		a      netip.Addr
		q      Request
		reason ipam.Reason
		words  string
	}{
		"another container": {a, Request{ContainerID: "x"}, ipam.ReasonAddressNotHeld, q.ContainerID},
		"another interface": {a, Request{ContainerID: q.ContainerID, IfName: "net1"}, ipam.ReasonAddressNotHeld,
			q.ContainerID},
		"an earlier container": {moved, Request{ContainerID: s.pool.Name + "-old"}, ipam.ReasonAddressNotHeld,
			s.pool.Name + "-new"},
		"no container":          {a, Request{}, ipam.ReasonAddressNotHeld, q.ContainerID},
		"nobody's address":      {free, Request{ContainerID: "x"}, ipam.ReasonAddressNotHeld, "not in use"},
		"one never used":        {unused, Request{ContainerID: "x"}, ipam.ReasonAddressNotHeld, "not in use"},
		"one set aside by hand": {aside, Request{ContainerID: "x"}, ipam.ReasonAddressNotHeld, "is reserved"},
		"one of no pool":        {s.addr(200), Request{ContainerID: "x"}, ipam.ReasonAddressNotInPool, ""},
	} {
		r.tap.Forget()
		_, err := r.report(t.Context(), test.a, test.q, s.mac(1))
		refused(t, err, test.reason, test.words)
		r.cost(what, 0, 1)
	}
	if l := r.lease(a); l.State != lease.Active || l.Conflict != nil {
		t.Errorf("the holder's: %+v", l)
	}
}

// What a claim keeps, and what was asked for by name, stays the holder's, and a DEL does with it what it always does.
func TestConflictOfKept(t *testing.T) {
	s := newSite("9-20")
	r := newReplica(t, s.pool)
	one := func(a netip.Addr) *netipx.IPSet { return ipaddr.SetOfAddrs(a) }
	for name, test := range map[string]struct {
		terms       Constraints
		asks        []netip.Addr
		words       string
		quarantined bool
		after       lease.State
	}{
		"claim": {terms: Constraints{Retention: lease.Retention{
			Claim: "default/kept", Fixed: true, PodPrimaryKey: "default/kept",
		}, Sets: []*netipx.IPSet{ipaddr.SetOfAddrs(s.addr(9), s.addr(10))}}, words: "claim default/kept",
			after: lease.Reserved},
		"request": {asks: []netip.Addr{s.addr(15)}, words: "asked for by name", after: lease.Available},
		"annotation": {terms: Constraints{Sets: []*netipx.IPSet{one(s.addr(16))}}, words: "asked for by name",
			after: lease.Available},
		"range": {terms: Constraints{Sets: []*netipx.IPSet{ipaddr.SetOfAddrs(s.addr(17), s.addr(18))}},
			quarantined: true, after: lease.Reserved},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, "conflict-"+name+"-"+s.pool.Name, s.host, r)
			terms.set(p.Name, test.terms)
			q := s.of(p, s.pool.Name+"-kept-"+name)
			q.Addrs = test.asks
			a := r.one(q)
			bound := r.lease(a).Bound()
			_, err := r.report(t.Context(), a, q, s.mac(len(name)))
			if test.quarantined {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			refused(t, err, ipam.ReasonAddressConflict, s.mac(len(name)), test.words)
			l := r.lease(a)
			if l.State != lease.Active || l.ContainerID != q.ContainerID || l.Bound() != bound ||
				l.Conflict == nil || l.Conflict.Outcome != lease.ConflictKept {
				t.Errorf("%+v, %+v", l, l.Conflict)
			}
			if again := r.one(q); again != a {
				t.Errorf("asking again: %s, want %s", again, a)
			}
			r.tap.Forget()
			_, err = r.report(t.Context(), a, q, s.mac(len(name)))
			refused(t, err, ipam.ReasonAddressConflict)
			r.cost("the same within a minute", 0, 1)
			r.del(del(q))
			if l := r.lease(a); l.State != test.after || l.IsQuarantined() {
				t.Errorf("after the DEL: %+v", l)
			}
		})
	}
}

// A newer container of a pod keeps the word that its address was asked for.
func TestNamedAddressMovesOn(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	p := newPod(t, "conflict-named-"+s.pool.Name, s.host, r)
	q := s.of(p, s.pool.Name+"-named-old")
	q.Addrs = []netip.Addr{s.addr(10)}
	r.one(q)
	newer := s.of(p, s.pool.Name+"-named-new")
	a := r.one(newer)
	_, err := r.report(t.Context(), a, newer, s.mac(1))
	refused(t, err, ipam.ReasonAddressConflict)
}

// Both pods of a machine that migrates answer for its address: that is no conflict, and changes nothing.
func TestConflictOfAMachine(t *testing.T) {
	cluster.InstallKubeVirt(t)
	r := newReplica(t)
	v := newVM(t, r)
	target := v.migrates()
	before := r.lease(v.addr)
	_, err := r.report(t.Context(), v.addr, v.from(target), v.mac(1))
	refused(t, err, ipam.ReasonAddressConflict, "migrates", v.source.Name)
	if l := r.lease(v.addr); l.Version != before.Version {
		t.Errorf("changed: %+v", l)
	}
}

// Who answers for three addresses, or for more than a few of a pool, is answering for all: what is reported then is
// free at once. After five addresses a host is heard no more.
func TestConflictBrakes(t *testing.T) {
	s, big := newSite("9-40"), newSite("9-40")
	r := newReplica(t, s.pool, big.pool)
	report := func(s site, i int, mac string) (Contested, error) {
		q := s.by(fmt.Sprint("brakes", i), "pods", time.Now())
		return r.report(t.Context(), r.one(q), q, mac)
	}
	outcome := func(c Contested, err error) lease.ConflictOutcome {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if want := map[lease.ConflictOutcome]lease.State{
			lease.ConflictQuarantined: lease.Reserved, lease.ConflictReleased: lease.Available,
		}[c.Now.Conflict.Outcome]; r.lease(c.Now.Addr).State != want {
			t.Errorf("%s: %+v", c.Now.Conflict.Outcome, r.lease(c.Now.Addr))
		}
		if c.Now.State == lease.Available { // nobody else is to get it and to report it anew
			taken := s.vm("takes" + c.Now.Addr.String())
			taken.Addrs = []netip.Addr{c.Now.Addr}
			if c.Now.Pool == big.pool.Name {
				taken.Host = big.host
			}
			r.one(taken)
		}
		return c.Now.Conflict.Outcome
	}
	const q, f = lease.ConflictQuarantined, lease.ConflictReleased
	// one MAC
	for i, want := range []lease.ConflictOutcome{q, q, f, f} {
		if got := outcome(report(s, i, s.mac(1))); got != want {
			t.Errorf("address %d of one MAC: %s, want %s", i, got, want)
		}
	}
	// another MAC: the pool has two quarantines, and a third may follow
	if got := outcome(report(s, 4, s.mac(2))); got != q {
		t.Errorf("another MAC: %s", got)
	}
	_, err := report(s, 5, s.mac(3))
	refused(t, err, ipam.ReasonTooManyConflicts, "5 addresses", s.host.String())
	for i, want := range []lease.ConflictOutcome{q, q, q, f} {
		if got := outcome(report(big, i, big.mac(i))); got != want {
			t.Errorf("address %d of a pool: %s, want %s", i, got, want)
		}
	}
	// what is repeated has the answer that it had, and counts for nothing
	c, err := r.report(t.Context(), r.index.Leases.Contested().By(s.mac(2), time.Now())[0], s.by("brakes4", "",
		time.Time{}), s.mac(2))
	if err != nil || !c.Repeated {
		t.Errorf("repeated: %+v, %v", c, err)
	}
}

// After an hour a host is heard again, and each quarantine of an address lasts twice as long as the last one.
func TestConflictLater(t *testing.T) {
	s := newSite("9")
	r := newReplica(t, s.pool)
	q := s.by("later", "pods", time.Now())
	a := r.one(q)
	for hours := time.Hour; hours <= 16*time.Hour; hours *= 2 {
		c, err := r.report(t.Context(), a, q, s.mac(1))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Now.Conflict.Until.Sub(c.Now.Conflict.At); got != hours {
			t.Errorf("rests for %s, want %s", got, hours)
		}
		// As if it had been as long ago.
		l := c.Now
		past := *l.Conflict
		past.At, past.Until = past.At.Add(-hours), past.Until.Add(-hours)
		l.Conflict, l.Updated = &past, past.At
		if l, err = r.leases.Write(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if !l.QuarantineOver(r.leases.Now()) {
			t.Fatalf("it is not over: %+v", l.Conflict)
		}
		freed, err := FreeLease(t.Context(), r.leases, l, lease.Change{},
			func(now lease.Lease) bool { return now.QuarantineOver(r.leases.Now()) })
		if err != nil || !freed {
			t.Fatalf("%v, %v", freed, err)
		}
		r.one(q)
	}
}

// A DEL and a report of one container at once: the address is free or rests, whoever is first, and nobody is told
// both.
func TestConflictDuringDEL(t *testing.T) {
	s := newSite("9-40")
	r := newReplica(t, s.pool)
	for i := range ipam.MaxReportsOfHost { // a further report would not be written
		q := s.by(fmt.Sprint("during", i), "pods", time.Now())
		a := r.one(q)
		gate := intercept.NewGate()
		mend := r.tap.On(intercept.All(writes, intercept.Named(a.String())), gate.Hold)
		var freed []netip.Addr
		var reported error
		var both sync.WaitGroup
		both.Go(func() { freed = r.del(del(q)) })
		both.Go(func() { _, reported = r.report(t.Context(), a, q, s.mac(10+i)) })
		controlplane.Until(t, "both are on their way", func() bool {
			return r.tap.Count(intercept.All(writes,
				intercept.Named(a.String()))) >= 2
		})
		gate.Open()
		both.Wait()
		mend()
		r.tap.Forget()
		switch l := r.lease(a); {
		case len(freed) == 1 && l.State == lease.Available:
			if reported == nil {
				t.Errorf("%s was freed, and the report was answered", a)
			}
		case len(freed) == 0 && reported == nil && l.Conflict.Outcome == lease.ConflictReleased &&
			l.State == lease.Available:
		case len(freed) == 0 && reported == nil && l.IsQuarantined():
		default:
			t.Errorf("freed %v, reported %v: %+v", freed, reported, l)
		}
		r.del(del(q))
	}
}

// One conflict that is reported twice at once, to two replicas, is one quarantine with one end.
func TestConflictTwiceAtOnce(t *testing.T) {
	s := newSite("9-12")
	r, other := newReplica(t, s.pool), newReplica(t, s.pool)
	q := s.by("twice", "pods", time.Now())
	a := r.one(q)
	var all sync.WaitGroup
	var got [6]Contested
	for i := range got {
		all.Go(func() {
			var err error
			if got[i], err = []*replica{r, other}[i%2].report(t.Context(), a, q, s.mac(1)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	l := r.lease(a)
	for i, c := range got {
		if diff := cmp.Diff(l.Conflict, c.Now.Conflict, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("answer %d: -stored +answered:\n%s", i, diff)
		}
	}
}

// A report whose write has an unknown outcome is answered when it is made again.
func TestConflictOfUnknownOutcome(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	q := s.by("unknown", "pods", time.Now())
	a := r.one(q)
	mend := r.tap.On(writes, intercept.LoseAnswer(errReset))
	_, err := r.report(t.Context(), a, q, s.mac(1))
	mend()
	refused(t, err, ipam.ReasonOutcomeUnknown, a.String())
	c, err := r.report(t.Context(), a, q, s.mac(1))
	if err != nil || !r.lease(a).IsQuarantined() || !c.Now.IsQuarantined() {
		t.Errorf("%+v, %v", c, err)
	}
}

// With a CRD of an earlier release, which drops the report, nothing stays reserved for good.
func TestConflictWithAnEarlierCRD(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	q := s.by("earlier-crd", "pods", time.Now())
	a := r.one(q)
	defer r.tap.On(writes, func(q *http.Request, next http.RoundTripper) (*http.Response, error) {
		var o map[string]any
		if err := json.NewDecoder(q.Body).Decode(&o); err != nil {
			return nil, err
		}
		delete(o["status"].(map[string]any), "conflict")
		body, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		q = q.Clone(q.Context())
		q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return next.RoundTrip(q)
	})()
	c, err := r.report(t.Context(), a, q, s.mac(1))
	if err != nil || c.Now.Conflict.Outcome != lease.ConflictReleased {
		t.Errorf("%+v, %v", c, err)
	}
	if l := r.lease(a); l.State != lease.Available || l.HeldFinalizer {
		t.Errorf("left is %+v", l)
	}
}

// by is the request of a container of an owner that a network configuration attaches, which began at a time.
func (s site) by(name, network string, began time.Time) Request {
	r := s.vm(name)
	r.ContainerID, r.CNINetwork, r.StartedAt = r.Owner+"-c", network, began
	return r
}

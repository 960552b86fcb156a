package allocator

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// by is the request of a container that a network configuration attaches, which began at a time.
func (s site) by(name, network string, began time.Time) Request {
	r := s.vm(name)
	r.ContainerID, r.CNINetwork, r.StartedAt = r.Owner+"-c", network, began
	return r
}

// collect collects a network of a site's host, whose list has the containers of some requests.
func (r *replica) collect(s site, network string, began time.Time, listed ...Request) []netip.Addr {
	r.t.Helper()
	g := NetworkGC{Host: s.host, CNINetwork: network, StartedAt: began}
	for _, l := range listed {
		g.Attachments = append(g.Attachments, Attachment{l.ContainerID, l.IfName})
	}
	ls, err := r.CollectNetwork(r.t.Context(), g)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []netip.Addr
	for _, l := range ls {
		out = append(out, l.Addr)
	}
	return out
}

// aged has leases be bound ten minutes ago, by the API server's time, and waits until the index shows it.
func (r *replica) aged(all ...netip.Addr) {
	r.t.Helper()
	cfg, err := identity()
	if err != nil {
		r.t.Fatal(err)
	}
	direct, err := store.New(cfg, nil, store.NewClock(nil))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range all {
		l := r.lease(a)
		l.BoundVersion, l.Updated = l.Bound(), l.Updated.Add(-10*time.Minute)
		if l, err = direct.Write(r.t.Context(), l); err != nil {
			r.t.Fatal(err)
		}
		controlplane.Until(r.t, "the index shows that "+a.String()+" is older", func() bool {
			seen, _ := r.index.Get(a)
			return seen.Version >= l.Version
		})
	}
}

// What a network no longer lists is given up, of its host and of that network alone, by one write each.
func TestCollectNetwork(t *testing.T) {
	s, at := newSite("9-30"), ago()
	r := newReplica(t, s.pool)
	second := s.host.Next()
	s.pool.Spec.Hosts = append(s.pool.Spec.Hosts, second.String())
	r.index.SetPool(poolOf(t, s.pool))
	got := map[string]netip.Addr{}
	add := func(name string, q Request) Request {
		got[name] = r.one(q)
		return q
	}
	listed := add("listed", s.by("listed", "pods", at(0)))
	add("forgotten", s.by("forgotten", "pods", at(0)))
	add("other network", s.by("other", "storage", at(0)))
	add("no network", s.by("none", "", at(0)))
	add("at that time", s.by("same", "pods", at(10)))
	add("later", s.by("later", "pods", at(11)))
	elsewhere := s.by("elsewhere", "pods", at(0))
	elsewhere.Host = second
	add("another host", elsewhere)
	bare := s.by("bare", "pods", at(0))
	bare.ContainerID = ""
	add("no container", bare)
	net1 := s.by("net1", "pods", at(0))
	net1.IfName = "net1"
	add("another interface", net1)
	onEth0 := net1
	onEth0.IfName = ""
	r.aged(slices.Collect(maps.Values(got))...)
	r.one(s.by("young", "pods", at(0)))
	r.tap.Forget()
	want := []netip.Addr{got["forgotten"], got["another interface"]}
	slices.SortFunc(want, netip.Addr.Compare)
	if freed := r.collect(s, "pods", at(10), listed, onEth0); !slices.Equal(freed, want) {
		t.Errorf("freed %v of %v, want %v", freed, got, want)
	}
	r.cost("GC", 2, 0)
	if freed := r.collect(s, "pods", at(10), listed); len(freed) != 0 {
		t.Errorf("a second time freed %v", freed)
	}
	if freed := r.collect(s, "", at(60), listed); len(freed) != 0 {
		t.Errorf("no network freed %v", freed)
	}
	r.cost("GC of nothing", 0, 0)
	if l := r.lease(got["listed"]); l.CNINetwork != "pods" || l.State != lease.Active {
		t.Errorf("listed: %+v", l.Holder)
	}
}

// An earlier container of the pod that is listed keeps the address of the newer one, and what a claim keeps is
// Reserved.
func TestCollectNetworkOfPods(t *testing.T) {
	s, at := newSite("9-30"), ago()
	r := newReplica(t, s.pool)
	p, q := newPod(t, "gc-moved-"+s.pool.Name, s.host, r), newPod(t, "gc-kept-"+s.pool.Name, s.host, r)
	terms.set(q.Name, Constraints{Retention: lease.Retention{Claim: "default/" + q.Name, Fixed: true, PodPrimaryKey: "default/" + q.Name}})
	ask := func(pod, container string, began time.Time) netip.Addr {
		return r.one(Request{Host: s.host, ContainerID: container, Namespace: "default", PodName: pod, CNINetwork: "pods", StartedAt: began})
	}
	moved := ask(p.Name, s.pool.Name+"-old", at(0))
	if again := ask(p.Name, s.pool.Name+"-new", at(1)); again != moved {
		t.Fatalf("%s, then %s", moved, again)
	}
	kept := ask(q.Name, s.pool.Name+"-kept-c", at(0))
	r.aged(moved, kept)
	if freed := r.collect(s, "pods", at(10), Request{ContainerID: s.pool.Name + "-old"}); !slices.Equal(freed, []netip.Addr{kept}) {
		t.Errorf("freed %v, want %s", freed, kept)
	}
	if l := r.lease(kept); !l.IsRetained() || l.CNINetwork != "" {
		t.Errorf("kept: %+v", l)
	}
	if freed := r.collect(s, "pods", at(10)); !slices.Equal(freed, []netip.Addr{moved}) {
		t.Errorf("freed %v, want %s", freed, moved)
	}
}

// All addresses of an interface go together.
func TestCollectNetworkOfTwoFamilies(t *testing.T) {
	s, at := newSite("9-12"), ago()
	s.pool.Spec.Network = s.pool.Name
	six := s.pool.DeepCopy()
	six.Name, six.Spec.Net, six.Spec.Mask = s.pool.Name+"-6", fmt.Sprintf("fd00:6c:%x::", sites.Load()), 64
	six.Spec.Gateway, six.Spec.AvailableIPs = six.Spec.Net+"1", []string{six.Spec.Net + "9"}
	r := newReplica(t, s.pool, six)
	got := r.add(s.by("both", "pods", at(0)))
	if len(got) != 2 {
		t.Fatalf("%v", got)
	}
	r.aged(got...)
	if freed := r.collect(s, "pods", at(10)); len(freed) != 2 {
		t.Errorf("freed %v of %v", freed, got)
	}
}

// Whatever the clock of the host says, and although it is set right between an ADD and the call: what was bound five
// minutes ago, and asked for before the call, may go. What is younger stays: its pod may be set up still, and the
// list was made without it.
func TestCollectNetworkByWrongClocks(t *testing.T) {
	for name, c := range map[string]struct{ atADD, atGC time.Duration }{
		"right":                  {},
		"hours behind":           {-5 * time.Hour, -5 * time.Hour},
		"hours ahead":            {5 * time.Hour, 5 * time.Hour},
		"in another year":        {9000 * time.Hour, 9000 * time.Hour},
		"minutes behind":         {-270 * time.Second, -270 * time.Second},
		"behind, then set right": {-4 * time.Minute, 0},
		"hours behind, then set": {-5 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite("9-12")
			r := newReplica(t, s.pool)
			before := r.one(s.by("before", "pods", time.Now().Add(c.atADD)))
			if freed := r.collect(s, "pods", time.Now().Add(c.atGC+time.Second)); len(freed) != 0 {
				t.Errorf("freed %v, which an ADD may have taken just now", freed)
			}
			r.aged(before)
			g := NetworkGC{Host: s.host, CNINetwork: "pods", StartedAt: time.Now().Add(c.atGC), ArrivedAt: r.leases.Now()}
			after := r.one(s.by("after", "pods", time.Now().Add(c.atGC)))
			r.aged(after)
			freed, err := r.CollectNetwork(t.Context(), g)
			if err != nil || len(freed) != 1 || freed[0].Addr != before {
				t.Errorf("freed %v, %v, want %s; of after the call is %s", freed, err, before, after)
			}
		})
	}
}

// Both ends of a machine that migrates count for their own hosts and containers.
func TestCollectNetworkOfAMachine(t *testing.T) {
	cluster.InstallKubeVirt(t)
	r := newReplica(t)
	v := newVM(t, r)
	target := v.target()
	from := v.from(target)
	from.CNINetwork, from.StartedAt = "pods", time.Now().Add(-time.Second)
	if got := r.one(from); got != v.addr {
		t.Fatalf("%s, want %s", got, v.addr)
	}
	r.aged(v.addr)
	gc := func(host netip.Addr) []lease.Lease {
		ls, err := r.CollectNetwork(t.Context(), NetworkGC{Host: host, CNINetwork: "pods", StartedAt: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		return ls
	}
	if freed := gc(v.host); len(freed) != 0 { // asked for without a network
		t.Errorf("the source freed %v", freed)
	}
	if freed := gc(v.second); len(freed) != 1 {
		t.Errorf("the target freed %v", freed)
	}
	if l := r.lease(v.addr); l.Other != nil || l.State != lease.Active || l.ContainerID != v.from(v.source).ContainerID {
		t.Errorf("left is %+v", l)
	}
}

// The host that a machine leaves collects its own attachment alone: the address stays the target's.
func TestCollectNetworkOfTheSource(t *testing.T) {
	cluster.InstallKubeVirt(t)
	r := newReplica(t)
	v := newVM(t, r)
	source := v.from(v.source)
	source.ContainerID, source.CNINetwork = source.ContainerID+"-again", "pods"
	r.one(source)
	target := v.from(v.target())
	target.CNINetwork = "pods"
	if got := r.one(target); got != v.addr {
		t.Fatalf("%s, want %s", got, v.addr)
	}
	r.aged(v.addr)
	gc := NetworkGC{Host: v.host, CNINetwork: "pods", StartedAt: time.Now()}
	if freed, err := r.CollectNetwork(t.Context(), gc); err != nil || len(freed) != 1 {
		t.Errorf("the source freed %v, %v", freed, err)
	}
	if l := r.lease(v.addr); l.Other != nil || l.State != lease.Active || l.ContainerID != target.ContainerID {
		t.Errorf("left is %+v", l)
	}
	gc.StartedAt = time.Now().Add(time.Second)
	if freed, err := r.CollectNetwork(t.Context(), gc); err != nil || len(freed) != 0 {
		t.Errorf("the source freed %v more, %v", freed, err)
	}
}

// An ADD that is under way when its network is collected keeps its address: a first one, whose lease is not written
// yet, and one that asks again for what it has long had.
func TestAddDuringCollection(t *testing.T) {
	s, at := newSite("9-12"), ago()
	r := newReplica(t, s.pool)
	for _, name := range []string{"first", "again"} {
		q := s.by(name, "pods", at(0))
		if name == "again" {
			r.aged(r.one(q))
			q.StartedAt = at(1)
		}
		gate := intercept.NewGate()
		mend := r.tap.On(writes, gate.Hold)
		done := r.adding(t.Context(), q)
		<-gate.Arrived()
		if freed := r.collect(s, "pods", at(10)); len(freed) != 0 {
			t.Errorf("%s: freed %v", name, freed)
		}
		gate.Open()
		o := <-done
		mend()
		if o.err != nil {
			t.Fatal(o.err)
		}
		if l := r.lease(o.addrs[0]); l.ContainerID != q.ContainerID {
			t.Errorf("%s: %s is of %q", name, l.Addr, l.ContainerID)
		}
		r.aged(o.addrs...)
		if freed := r.collect(s, "pods", at(10)); !slices.Equal(freed, o.addrs) {
			t.Errorf("%s, once it has ended: freed %v, want %v", name, freed, o.addrs)
		}
	}
}

// A collection decides on what it saw at its beginning: a lease that another replica has given to somebody else
// meanwhile stays, although the index does not show it yet.
func TestCollectionIsBehind(t *testing.T) {
	s, at := newSite("9"), ago()
	r, other := newReplica(t, s.pool), newReplica(t, s.pool)
	first := s.by("first", "pods", at(0))
	a := r.one(first)
	r.aged(a)
	other.picture(s, map[netip.Addr]string{a: first.ContainerID})
	r.watch.Shut()
	other.del(del(first))
	second := s.by("second", "pods", at(1))
	if got := other.one(second); got != a {
		t.Fatalf("%s, want %s", got, a)
	}
	other.aged(a)
	if freed := r.collect(s, "pods", at(10)); len(freed) != 0 {
		t.Errorf("freed %v", freed)
	}
	r.watch.Open()
	if diff := cmp.Diff(map[netip.Addr]string{a: second.ContainerID}, s.held(t), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// ADDs, DELs and collections at once: who was told an address and is listed has it, and when all is over and nobody
// is listed nothing is left.
func TestCollectionsAmongAdds(t *testing.T) {
	s, at := newSite("9-60"), ago()
	r, other := newReplica(t, s.pool), newReplica(t, s.pool)
	const n = 20
	var listed []Request
	want := map[netip.Addr]string{}
	for i := range n {
		q := s.by(fmt.Sprint("listed", i), "pods", at(0))
		want[[]*replica{r, other}[i%2].one(q)] = q.ContainerID
		listed = append(listed, q)
	}
	r.picture(s, want)
	r.aged(slices.Collect(maps.Keys(want))...)
	var adds []<-chan outcome
	for i := range n {
		adds = append(adds, []*replica{r, other}[i%2].adding(t.Context(), s.by(fmt.Sprint("new", i), "pods", at(20))))
		r.collect(s, "pods", at(10), listed...)
	}
	for _, done := range adds {
		o := <-done
		if o.err != nil {
			t.Fatal(o.err)
		}
		want[o.addrs[0]] = "new"
	}
	if held := s.held(t); len(held) != len(want) {
		t.Errorf("%d are held, want %d", len(held), len(want))
	}
	r.aged(slices.Collect(maps.Keys(want))...)
	controlplane.Until(t, "nothing is left", func() bool {
		r.collect(s, "pods", at(30))
		return len(s.held(t)) == 0
	})
}

// Where the API server fails the collection says so; another one does the rest.
func TestCollectNetworkFails(t *testing.T) {
	s, at := newSite("9-12"), ago()
	r := newReplica(t, s.pool)
	a := r.one(s.by("fails", "pods", at(0)))
	r.aged(a)
	mend := r.tap.On(writes, intercept.Answer(503, metav1.StatusReasonServiceUnavailable, 0))
	_, err := r.CollectNetwork(t.Context(), NetworkGC{Host: s.host, CNINetwork: "pods", StartedAt: at(10)})
	mend()
	refused(t, err, ipam.ReasonOutcomeUnknown, a.String())
	if freed := r.collect(s, "pods", at(10)); !slices.Equal(freed, []netip.Addr{a}) {
		t.Errorf("freed %v, want %s", freed, a)
	}
}

package allocator

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// An ADD that is under way when its network is collected keeps its address: a first one, whose lease is not written
// yet, and one of another container for what its pod has long had. Their pods are deleted meanwhile, by force.
func TestAddDuringCollection(t *testing.T) {
	s, at := newSite("9-12"), ago()
	r := newReplica(t, s.pool)
	latest := r.latest(s, "pods")
	for _, name := range []string{"first", "again"} {
		q := r.by(s, name, "pods", at(0))
		if name == "again" {
			r.aged(r.one(q))
			q.ContainerID, q.StartedAt = q.ContainerID+"-2", at(1)
		}
		gate := intercept.NewGate()
		mend := r.tap.On(writes, gate.Hold)
		done := r.adding(t.Context(), q)
		<-gate.Arrived()
		r.vanish(q)
		if freed := r.collect(s, "pods", at(10), latest); len(freed) != 0 {
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
		if freed := r.collect(s, "pods", at(10), latest); !slices.Equal(freed, o.addrs) {
			t.Errorf("%s, once it has ended: freed %v, want %v", name, freed, o.addrs)
		}
	}
}

// A collection decides on what it saw at its beginning: a lease that another replica has given to somebody else
// meanwhile stays, although the index does not show it yet.
func TestCollectionIsBehind(t *testing.T) {
	s, at := newSite("9-10"), ago()
	r, other := newReplica(t, s.pool), newReplica(t, s.pool)
	latest := r.by(s, "latest", "pods", at(0))
	b := r.one(latest)
	first := r.by(s, "first", "pods", at(0))
	a := r.one(first)
	r.aged(a)
	other.picture(s, map[netip.Addr]string{a: first.ContainerID, b: latest.ContainerID})
	r.watch.Shut()
	other.del(del(first))
	r.vanish(first)
	second := other.by(s, "second", "pods", at(1))
	if got := other.one(second); got != a {
		t.Fatalf("%s, want %s", got, a)
	}
	other.aged(a)
	if freed := r.collect(s, "pods", at(10), latest); len(freed) != 0 {
		t.Errorf("freed %v", freed)
	}
	r.watch.Open()
	if diff := cmp.Diff(map[netip.Addr]string{a: second.ContainerID, b: latest.ContainerID}, s.held(t), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// ADDs and collections at once: who was told an address has it, listed or not, and when all pods are gone nothing is
// left but the one that is listed.
func TestCollectionsAmongAdds(t *testing.T) {
	s, at := newSite("9-60"), ago()
	r, other := newReplica(t, s.pool), newReplica(t, s.pool)
	const n = 12
	var all []Request
	want := map[netip.Addr]string{}
	for i := range n {
		q := r.by(s, fmt.Sprint("there", i), "pods", at(0))
		other.seesAll(q)
		want[[]*replica{r, other}[i%2].one(q)] = q.ContainerID
		all = append(all, q)
	}
	r.picture(s, want)
	r.aged(slices.Collect(maps.Keys(want))...)
	latest := r.latest(s, "pods")
	var adds []<-chan outcome
	for i := range n {
		q := r.by(s, fmt.Sprint("new", i), "pods", at(20))
		other.seesAll(q)
		all = append(all, q)
		adds = append(adds, []*replica{r, other}[i%2].adding(t.Context(), q))
		r.collect(s, "pods", at(10), latest)
	}
	for _, done := range adds {
		o := <-done
		if o.err != nil {
			t.Fatal(o.err)
		}
		want[o.addrs[0]] = "new"
	}
	if held := s.held(t); len(held) != len(want)+1 {
		t.Errorf("%d are held, want %d and one more", len(held), len(want))
	}
	r.aged(slices.Collect(maps.Keys(want))...)
	r.vanish(all...)
	controlplane.Until(t, "nothing is left but the one that is listed", func() bool {
		r.collect(s, "pods", at(30), latest)
		return len(s.held(t)) == 1
	})
}

// Where the API server fails the collection says so; another one does the rest.
func TestCollectNetworkFails(t *testing.T) {
	s, at := newSite("9-12"), ago()
	r := newReplica(t, s.pool)
	q := r.by(s, "fails", "pods", at(0))
	a := r.one(q)
	r.aged(a)
	latest := r.latest(s, "pods")
	r.vanish(q)
	mend := r.tap.On(writes, intercept.Answer(503, metav1.StatusReasonServiceUnavailable, 0))
	_, err := r.CollectNetwork(t.Context(), NetworkGC{
		Host: s.host, CNINetwork: "pods", Attachments: []Attachment{{ContainerID: latest.ContainerID}}, StartedAt: at(10),
	})
	mend()
	refused(t, err, ipam.ReasonOutcomeUnknown, a.String())
	if freed := r.collect(s, "pods", at(10), latest); !slices.Equal(freed, []netip.Addr{a}) {
		t.Errorf("freed %v, want %s", freed, a)
	}
}

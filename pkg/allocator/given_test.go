package allocator

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

var sameSettings = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})

// A container that asks again gets what it was given, although its pool says something else by now, and at the cost of
// any repeated request. The next container of the pod gets what the pool says now.
func TestGivenStays(t *testing.T) {
	s := newSite("9-12")
	s.pool.Spec.VLAN, s.pool.Spec.MTU = 7, 9000
	s.pool.Spec.Routes = []v1.Route{{Dst: "10.8.0.0/16"}}
	s.pool.Spec.DNS = &v1.DNS{Nameservers: []string{"10.0.0.2"}, Search: []string{"corp.example"}}
	r := newReplica(t, s.pool)
	p := newPod(t, "given", s.host, r)
	request := s.of(p, "given-c1")
	answer := func(r *replica, of Request) lease.Settings {
		t.Helper()
		got, err := r.Allocate(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		return got[0].Settings
	}
	want := poolOf(t, s.pool).Settings()
	if diff := cmp.Diff(want, answer(r, request), sameSettings); diff != "" {
		t.Fatalf("the first answer: -want +got:\n%s", diff)
	}
	changed := s.pool.DeepCopy()
	changed.Spec.Gateway, changed.Spec.VLAN, changed.Spec.MTU, changed.Spec.Routes, changed.Spec.DNS = "", 8, 0, nil, nil
	r.index.Pools.SetPool(poolOf(t, changed))
	other := newReplica(t, changed)
	for name, r := range map[string]*replica{"by the same replica": r, "by another one": other} {
		r.tap.Forget()
		if diff := cmp.Diff(want, answer(r, request), sameSettings); diff != "" {
			t.Errorf("asked again %s: -want +got:\n%s", name, diff)
		}
		r.cost("asked again "+name, 0, 1)
	}
	next := s.of(p, "given-c2")
	next.StartedAt = time.Now()
	if diff := cmp.Diff(poolOf(t, changed).Settings(), answer(r, next), sameSettings); diff != "" {
		t.Errorf("the next container: -want +got:\n%s", diff)
	}
}

// A release that does not know the fields gives the address to another container and leaves them: they are not that
// one's, and what it was given is not known.
func TestGivenOfAnEarlierRelease(t *testing.T) {
	s := newSite("9-12")
	s.pool.Spec.VLAN = 7
	r := newReplica(t, s.pool)
	p := newPod(t, "rewritten", s.host, r)
	addr := r.one(s.of(p, "rewritten-c1"))
	if l := r.lease(addr); !l.Given.Known() {
		t.Fatal("it is not known what was given")
	}
	patch(t, addr, `{"status":{"containerID":"another-c2"}}`)
	if l := r.lease(addr); l.Given.Known() || l.ContainerID != "another-c2" {
		t.Errorf("container %s was given %s", l.ContainerID, l.Given)
	}
	patch(t, addr, `{"status":{"containerID":"rewritten-c1","given":{"gateway":"10.255.255"}}}`)
	if l := r.lease(addr); l.Given.Known() {
		t.Errorf("a gateway that is none was given: %s", l.Given)
	}
}

func patch(t *testing.T, addr netip.Addr, change string) {
	t.Helper()
	o := &v1.BCSNetIP{ObjectMeta: metav1.ObjectMeta{Name: addr.String()}}
	if err := cluster.AdminFor(t).Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
		t.Fatal(err)
	}
}

// The gateway of an answer: an annotation's before the pool's, and a host's before both, if hosts may name one.
func TestGatewayOfAnAnswer(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	for name, tc := range map[string]struct {
		asked, ofNode, annotated netip.Addr
		hosts, none              bool
		want                     lease.Settings
	}{
		"the pool's":                         {asked: s.addr(2), ofNode: s.addr(3), want: lease.Settings{Gateway: s.addr(254)}},
		"the request's":                      {asked: s.addr(2), ofNode: s.addr(3), hosts: true, want: lease.Settings{Gateway: s.addr(2), GatewayFrom: lease.FromHost}},
		"the node's":                         {ofNode: s.addr(3), hosts: true, want: lease.Settings{Gateway: s.addr(3), GatewayFrom: lease.FromHost}},
		"outside the subnet":                 {asked: netip.MustParseAddr("192.0.2.1"), hosts: true, want: lease.Settings{Gateway: s.addr(254)}},
		"the address itself":                 {asked: s.addr(9), hosts: true, want: lease.Settings{Gateway: s.addr(254)}},
		"an annotation's":                    {annotated: s.addr(4), want: lease.Settings{Gateway: s.addr(4), GatewayFrom: lease.FromAnnotation}},
		"the host's before the annotation's": {asked: s.addr(2), annotated: s.addr(4), hosts: true, want: lease.Settings{Gateway: s.addr(2), GatewayFrom: lease.FromHost}},
		"of a pool without":                  {asked: s.addr(2), hosts: true, none: true},
		"an annotation's of a pool without":  {annotated: s.addr(4), none: true, want: lease.Settings{Gateway: s.addr(4), GatewayFrom: lease.FromAnnotation}},
	} {
		t.Run(name, func(t *testing.T) {
			if r.answers.gatewayOf = nil; tc.hosts {
				r.PreferHostGateways(func(netip.Addr) netip.Addr { return tc.ofNode })
			}
			pool := s.pool.DeepCopy()
			if tc.none {
				pool.Spec.Gateway = ""
			}
			p := poolOf(t, pool)
			of := &attempt{Request: Request{Host: s.host, HostGateway: tc.asked}, constraints: Constraints{Gateway: tc.annotated}}
			got := r.answers.settings(of, lease.Lease{Addr: s.addr(9), Params: p.Params()}, p)
			if diff := cmp.Diff(tc.want, got, sameSettings); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

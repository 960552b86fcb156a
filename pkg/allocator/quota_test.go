package allocator

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestQuotaAtOnce: of many requests at once a namespace gets as many addresses as its quota, and what its claims keep
// counts as what its pods have. A pod of a claim gets its own back, however full the namespace is.
func TestQuotaAtOnce(t *testing.T) {
	s := newSite("9-60")
	s.pool.Spec.Quotas = []v1.NamespaceQuota{{Namespace: "default", Max: 4}}
	r := newReplica(t, s.pool)
	var pods []*corev1.Pod
	for i := range 8 {
		p := newPod(t, fmt.Sprintf("%s-quota-%d", s.pool.Name, i), s.host, r)
		terms.set(p.Name, s.keyed(p.Name))
		pods = append(pods, p)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	served := map[*corev1.Pod]netip.Addr{}
	for _, p := range pods {
		group.Go(func() {
			leases, err := r.Allocate(t.Context(), s.of(p, "c-"+p.Name))
			why, _ := errors.AsType[*ipam.Refusal](err)
			switch {
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				served[p] = leases[0].Addr
			case why == nil || why.Reason != ipam.ReasonQuotaExceeded:
				t.Errorf("%v", err)
			}
		})
	}
	group.Wait()
	if len(served) != 4 {
		t.Fatalf("%d were served, want 4", len(served))
	}
	for p, a := range served {
		r.del(del(s.of(p, "c-"+p.Name)))
		if l := r.lease(a); !l.IsRetained() {
			t.Fatalf("%s is %s after its DEL", a, l.State)
		}
	}
	for _, p := range pods {
		got, err := r.Allocate(t.Context(), s.of(p, "d-"+p.Name))
		switch before, had := served[p]; {
		case had && (err != nil || got[0].Addr != before):
			t.Errorf("pod %s had %s, and has %v, %v", p.Name, before, got, err)
		case !had:
			refused(t, err, ipam.ReasonQuotaExceeded, "namespace default has 4 of the 4")
		}
	}
}

// TestQuotaOverrun: two replicas that do not see each other's writes may give a namespace more than its quota. The pods
// keep their addresses, both replicas count them, and give no more.
func TestQuotaOverrun(t *testing.T) {
	s := newSite("9-60")
	s.pool.Spec.MaxPerNamespace = 1
	one, two := newReplica(t, s.pool), newReplica(t, s.pool)
	p, q, late := newPod(t, s.pool.Name+"-a", s.host, one, two), newPod(t, s.pool.Name+"-b", s.host, one, two),
		newPod(t, s.pool.Name+"-c", s.host, one, two)
	two.watch.Shut()
	a := one.one(s.of(p, "a-"+p.Name))
	other := s.of(q, "b-"+q.Name)
	// in a conflict about the first one's address the second would learn of its lease
	other.Addrs = []netip.Addr{s.otherThan(a)}
	answer := two.adding(t.Context(), other)
	one.awaitUse(s, 2)
	two.watch.Open()
	got := <-answer
	if got.err != nil {
		t.Fatal(got.err)
	}
	for _, r := range []*replica{one, two} {
		r.awaitUse(s, 2)
		if use := r.index.Pools.QuotaUse(s.pool.Name); !use[0].Over() {
			t.Errorf("%v is no overrun", use)
		}
		if again := r.one(s.of(p, "a-"+p.Name)); again != a {
			t.Errorf("the first has %s, it had %s", again, a)
		}
		if again := r.one(s.of(q, "b-"+q.Name)); again != got.addrs[0] {
			t.Errorf("the second has %s, it had %s", again, got.addrs[0])
		}
		_, err := r.Allocate(t.Context(), s.of(late, "c-"+late.Name))
		refused(t, err, ipam.ReasonQuotaExceeded, "namespace default has 2 of the 1")
	}
	one.del(del(s.of(p, "a-"+p.Name)))
	two.awaitUse(s, 1)
	_, err := two.Allocate(t.Context(), s.of(late, "c-"+late.Name))
	refused(t, err, ipam.ReasonQuotaExceeded, "namespace default has 1 of the 1")
	two.del(del(s.of(q, "b-"+q.Name)))
	one.awaitUse(s, 0)
	one.one(s.of(late, "c-"+late.Name))
}

// otherThan returns an address of a site of addresses 9 to 60 that is not the given one.
func (s site) otherThan(a netip.Addr) netip.Addr {
	if b := s.addr(9); b != a {
		return b
	}
	return s.addr(10)
}

// awaitUse waits until a replica counts so many addresses of a site for the namespace of its pods.
func (r *replica) awaitUse(s site, n int) {
	r.t.Helper()
	controlplane.Until(r.t, fmt.Sprintf("the namespace has %d", n), func() bool {
		use := r.index.Pools.QuotaUse(s.pool.Name)
		return len(use) == 0 && n == 0 || len(use) == 1 && use[0].Has == n
	})
}

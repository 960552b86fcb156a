package http_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// deafToPools takes watches of pools and tells them nothing.
func deafToPools(_ *apiProxy, w http.ResponseWriter, r *http.Request) bool {
	if !intercept.Watches(r) || !strings.HasSuffix(r.URL.Path, "/bcsnetpools") {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // the client has gone, if that fails
	<-r.Context().Done()
	return true
}

// splitNow sets the block size of a pool that serves.
func splitNow(t *testing.T, p *v1.BCSNetPool, size int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"blockSize":%d,"autoAssign":true}}`, size)
	if err := shared.admin.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// condition waits until the pool of the site is or is not Ready, for a reason.
func (s *site) condition(within time.Duration, reason string) *v1.BCSNetPool {
	s.t.Helper()
	var p v1.BCSNetPool
	controlplane.EventuallyWithin(s.t, within, func() error {
		if err := shared.admin.Get(s.t.Context(), client.ObjectKey{Name: s.Namespace}, &p); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionReady)
		if c == nil || c.Reason != reason {
			return fmt.Errorf("condition %+v, want %s", c, reason)
		}
		return nil
	})
	return &p
}

// TestSplitWhilePodsAsk: a pool is split while pods of two namespaces ask two replicas, one of which hears of it late.
// What this one hands out meanwhile lies in no block that the other has given to another namespace; leases stay.
func TestSplitWhilePodsAsk(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	proxy := newProxy(t, shared.cluster)
	late := startFor(t, proxy.config(), nil).caller()
	s, other := newSite(t), newSite(t)
	p := s.makePool(&v1.BCSNetPool{}, func(p *v1.BCSNetPool) {
		p.Name = s.Namespace
		p.Spec = v1.BCSNetPoolSpec{
			Net: s.ip(0), Mask: 24, Gateway: s.ip(1), Hosts: []string{s.Host}, AvailableIPs: []string{s.ip(0) + "/24"},
			Namespaces: []string{s.Namespace, other.Namespace},
		}
	})
	s.knownTo(late)
	before, first := s.given("before")

	var all sync.WaitGroup
	var stop atomic.Bool
	var n atomic.Int32
	for i := range 4 {
		of, call := []*site{s, other}[i%2], []caller{s.call, late}[i/2]
		all.Go(func() {
			for !stop.Load() {
				pod := fmt.Sprintf("web-%d", n.Add(1))
				of.pod(pod)
				body := with(of.request(newID(), pod), "host", s.Host)
				for range 8 {
					a, err := call.send(t.Context(), "POST", prefix, body)
					if err != nil {
						t.Error(err)
					}
					if a.Code == 0 || stop.Load() {
						break
					}
					time.Sleep(500 * time.Millisecond) //nolint:forbidigo // kubelet asks again
				}
				time.Sleep(500 * time.Millisecond) //nolint:forbidigo // pods come apart
			}
		})
	}
	proxy.silence(deafToPools)
	began := time.Now()
	splitNow(t, p, 28)
	s.condition(time.Minute, v1.ReasonCarving)
	for range 10 { // that one has not heard of it
		pod := fmt.Sprintf("deaf-%d", n.Add(1))
		other.pod(pod)
		body := with(other.request(newID(), pod), "host", s.Host)
		if a, err := late.send(t.Context(), "POST", prefix, body); err != nil || a.Code != 0 {
			t.Errorf("%v %s", err, a.Raw)
		}
	}
	time.Sleep(allocator.MaxRequestTime / 3) //nolint:forbidigo // requests come meanwhile
	proxy.set(nil)
	proxy.api.Cut()
	s.condition(time.Minute, v1.ReasonReady)
	if took := time.Since(began); took < allocator.MaxRequestTime {
		t.Errorf("blocks are given after %s, while a request may be under way that knows of none", took)
	}
	controlplane.EventuallyWithin(t, time.Minute, func() error {
		if len(s.blocks()) == 0 {
			return fmt.Errorf("no block")
		}
		return nil
	})
	stop.Store(true)
	all.Wait()
	if got := s.add(before).done(t)["ipAddr"]; got != first {
		t.Errorf("the pod of before had %s, and is answered %v", first, got)
	}
	s.unmixed()
}

// unmixed checks that nobody has an address in a block but the namespace that owns it.
func (s *site) unmixed() {
	s.t.Helper()
	var ips v1.BCSNetIPList
	if err := shared.admin.List(s.t.Context(), &ips); err != nil {
		s.t.Fatal(err)
	}
	held := 0
	for name, owner := range s.blocks() {
		var b v1.BCSNetPool
		if err := shared.admin.Get(s.t.Context(), client.ObjectKey{Name: name}, &b); err != nil {
			s.t.Fatal(err)
		}
		block := netip.MustParsePrefix(b.Spec.AvailableIPs[0])
		for _, o := range ips.Items {
			a, err := netip.ParseAddr(o.Name)
			if err != nil || !block.Contains(a) || o.Status.Status != v1.IPActive {
				continue
			}
			if held++; o.Status.PodNamespace != owner {
				s.t.Errorf("%s in block %s of %s is held by %s/%s, of pool %s", a, name, owner, o.Status.PodNamespace,
					o.Status.PodName, o.Spec.Pool)
			}
		}
	}
	s.t.Logf("%d addresses in %d blocks", held, len(s.blocks()))
}

package services_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// The leader ends between any two of its writes: the next one goes on, with the same address, and leaves nothing.
func TestKilledBetweenWrites(t *testing.T) {
	status := func(n int32) intercept.Match {
		var seen atomic.Int32 // the first write of a status is that of the finalizer
		return func(r *http.Request) bool {
			return r.Method == http.MethodPatch && intercept.Of("web")(r) && seen.Add(1) >= n
		}
	}
	for step, stuck := range map[string]func() intercept.Match{
		"before the finalizer": func() intercept.Match { return status(1) },
		"before the lease": func() intercept.Match {
			return intercept.All(intercept.Of("bcsnetips"), intercept.Method(http.MethodPut, http.MethodPatch))
		},
		"before the status": func() intercept.Match { return status(2) },
	} {
		for how, hook := range map[string]intercept.Hook{
			"unsent":     intercept.Fail(errors.New("the leader is killed")),
			"unanswered": intercept.LoseAnswer(errors.New("the leader is killed")),
		} {
			t.Run(step+", "+how, func(t *testing.T) {
				s, tap := newSite(t), &intercept.Tap{}
				first := start(t, tap)
				s.made(4)
				var reached atomic.Bool
				defer tap.On(stuck(), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
					reached.Store(true)
					return hook(r, next)
				})()
				s.service("web")
				controlplane.Eventually(t, func() error {
					if !reached.Load() {
						return errors.New("it has not come to that yet")
					}
					return nil
				})
				if err := first.Stop(); err != nil {
					t.Fatal(err)
				}
				start(t, nil)
				s.has("web", s.prefix+"1")
				if n := s.leases(); n != 1 {
					t.Errorf("%d leases", n)
				}
				s.remove("web")
				s.gone("web")
				s.held(s.prefix+"1", "")
			})
		}
	}
}

// made waits until the addresses of the site's pool have their objects.
func (s *site) made(n int) {
	s.Helper()
	controlplane.Eventually(s.T, func() error {
		var all v1.BCSNetIPList
		err := admin.List(s.Context(), &all)
		all.Items = slices.DeleteFunc(all.Items, func(o v1.BCSNetIP) bool { return o.Spec.Pool != s.pool })
		if err == nil && len(all.Items) < n {
			err = fmt.Errorf("%d addresses of %d have an object", len(all.Items), n)
		}
		return err
	})
}

// A Service that is deleted while no controller runs keeps its address until one does, and so do those that share it.
func TestDeletedWhileDown(t *testing.T) {
	first := start(t, nil)
	s := newSite(t)
	s.service("web")
	s.has("web", s.prefix+"1")
	s.service("a", sharing("k", 80, corev1.ProtocolTCP))
	s.has("a", s.prefix+"2")
	s.service("b", sharing("k", 443, corev1.ProtocolTCP))
	s.has("b", s.prefix+"2")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	s.remove("web")
	s.remove("a")
	s.service("new")
	if s.get("web") == nil || s.get("a") == nil {
		t.Fatal("they are gone although nobody gave their addresses back")
	}
	start(t, nil)
	s.gone("web")
	s.gone("a")
	s.held(s.prefix+"2", "b")
	s.has("b", s.prefix+"2")
	s.has("new")
	if n := s.leases(); n != 2 {
		t.Errorf("%d leases", n)
	}
}

// The Services of a namespace that is deleted give their addresses back.
func TestNamespaceGoes(t *testing.T) {
	start(t, nil)
	s := newSite(t)
	for i := range 3 {
		s.service(fmt.Sprintf("web-%d", i))
		s.has(fmt.Sprintf("web-%d", i))
	}
	ns := &corev1.Namespace{ObjectMeta: s.named(s.namespace)}
	if err := admin.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	// No controller manager runs here: this is what it does of a namespace.
	if err := admin.DeleteAllOf(t.Context(), &corev1.Service{}, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		s.gone(fmt.Sprintf("web-%d", i))
	}
	s.held(s.prefix+"1", "")
	if n := s.leases(); n != 0 {
		t.Errorf("%d leases", n)
	}
}

// Two replicas, and Services all the while: the leader is killed in the middle. Each Service has an address of its own.
func TestTwoReplicas(t *testing.T) {
	s := newSite(t, func(p *v1.BCSNetPool) { p.Spec.AvailableIPs = []string{p.Spec.Net + "/25"} })
	var replicas []*controlplane.Controller
	for range 2 {
		c, err := cluster.StartController(t.Context(), controlplane.ControllerOptions{
			Args: []string{"--services", "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s",
				"--leader-elect-retry-period=200ms"},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Stop() })
		replicas = append(replicas, c)
	}
	const n = 60
	name := func(i int) string { return fmt.Sprintf("web-%d", i) }
	for i := range n {
		s.service(name(i))
		if i == n/3 {
			s.has(name(0))
			if err := replicas[0].Kill(); err != nil { // the first one leads
				t.Fatal(err)
			}
		}
	}
	s.distinct(n, name)
	for i := range n {
		s.remove(name(i))
	}
	controlplane.EventuallyWithin(t, time.Minute, func() error {
		if n := s.leases(); n > 0 {
			return fmt.Errorf("%d leases are left", n)
		}
		return nil
	})
}

// distinct waits until Services have addresses, and holds these against each other and against the leases.
func (s *site) distinct(n int, name func(int) string) {
	s.Helper()
	who := map[string]string{}
	for i := range n {
		a := s.has(name(i))[0]
		if other, twice := who[a]; twice {
			s.Errorf("%s is of %s and %s", a, other, name(i))
		}
		who[a] = name(i)
		if _, owner := s.lease(a); owner != "service/"+s.namespace+"/"+name(i) {
			s.Errorf("the lease of %s is of %s", a, owner)
		}
	}
	if got := s.leases(); got != n {
		s.Errorf("%d leases for %d Services", got, n)
	}
}

// There are ten times as many Services as addresses: as many as there are addresses have one, the others say why not,
// write nothing while they wait, and get those that become free.
func TestMoreServicesThanAddresses(t *testing.T) {
	controlplane.TakesLong(t)
	const addresses, services = 100, 1000
	tap := &intercept.Tap{}
	start(t, tap)
	s := newSite(t, func(p *v1.BCSNetPool) {
		p.Spec.AvailableIPs = []string{p.Spec.Net[:len(p.Spec.Net)-1] + "1-" + p.Spec.Net[:len(p.Spec.Net)-1] + "100"}
	})
	for i := range services {
		s.service(fmt.Sprintf("web-%d", i), func(o *corev1.Service) { o.Spec.AllocateLoadBalancerNodePorts = new(false) })
	}
	counts := func() (given, refused []string, shown map[string]int) {
		var all corev1.ServiceList
		if err := admin.List(t.Context(), &all, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
		shown = map[string]int{}
		for i := range all.Items {
			o := &all.Items[i]
			for _, c := range o.Status.Conditions {
				switch c.Reason {
				case "Given":
					given = append(given, o.Name)
				case "PoolExhausted":
					refused = append(refused, o.Name)
				}
			}
			for _, i := range o.Status.LoadBalancer.Ingress {
				shown[i.IP]++
			}
		}
		return given, refused, shown
	}
	settled := func(given, refused int) (who []string) {
		t.Helper()
		controlplane.EventuallyWithin(t, 5*time.Minute, func() error {
			g, r, shown := counts()
			for a, n := range shown {
				if n > 1 {
					t.Fatalf("%d Services show %s", n, a)
				}
			}
			if who = g; len(g) != given || len(r) != refused || len(shown) != given {
				return fmt.Errorf("%d have an address (%d shown), %d are refused", len(g), len(shown), len(r))
			}
			return nil
		})
		return who
	}
	who := settled(addresses, services-addresses)
	if n := s.leases(); n != addresses {
		t.Errorf("%d leases", n)
	}
	for _, name := range who[:50] {
		s.remove(name)
	}
	settled(addresses, services-addresses-50)
	tap.Forget()
	s.settled()
	writes := tap.Count(intercept.All(intercept.Of(s.namespace), intercept.Of("services"), intercept.Writes))
	if writes > 0 {
		t.Errorf("%d writes while nothing changes", writes)
	}
}

// Leases that were lost are made again from what Services show, before the pool hands anything out.
func TestLostLeases(t *testing.T) {
	first := start(t, nil)
	s := newSite(t)
	s.service("web", asking(s.prefix+"2"))
	s.has("web", s.prefix+"2")
	s.service("a", sharing("k", 80, corev1.ProtocolTCP))
	s.has("a", s.prefix+"1")
	s.service("b", sharing("k", 443, corev1.ProtocolTCP))
	s.has("b", s.prefix+"1")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{s.prefix + "1", s.prefix + "2"} {
		o := &v1.BCSNetIP{ObjectMeta: s.named(a)}
		s.patch(o, `{"metadata":{"finalizers":[]}}`)
		if err := admin.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	s.service("new")
	start(t, nil)
	s.has("new", s.prefix+"3")
	s.has("web", s.prefix+"2")
	s.has("a", s.prefix+"1")
	s.has("b", s.prefix+"1")
	s.held(s.prefix+"2", "web")
	if n := s.leases(); n != 3 {
		t.Errorf("%d leases", n)
	}
}

package clusterapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// The leader ends between any two of its writes, when it answers a claim and when that is deleted: the next one goes
// on, with the same address, and leaves nothing.
func TestKilledBetweenWrites(t *testing.T) {
	install(t, "v1beta2")
	of := func(resource string, methods ...string) intercept.Match {
		return intercept.All(intercept.Of(resource), intercept.Method(methods...))
	}
	for step, c := range map[string]struct {
		stuck    intercept.Match
		deletion bool
	}{
		"before the lease":           {stuck: of("bcsnetips", http.MethodPut, http.MethodPost)},
		"before the IPAddress":       {stuck: of("ipaddresses", http.MethodPost)},
		"before the claim's part":    {stuck: of("ipaddressclaims", http.MethodPatch)},
		"before the deletion":        {stuck: of("ipaddresses", http.MethodDelete), deletion: true},
		"before the address is free": {stuck: of("bcsnetips", http.MethodPut), deletion: true},
		"before the finalizer goes":  {stuck: of("ipaddresses", http.MethodPatch), deletion: true},
	} {
		for how, hook := range map[string]intercept.Hook{
			"unsent":     intercept.Fail(errors.New("the leader is killed")),
			"unanswered": intercept.LoseAnswer(errors.New("the leader is killed")),
		} {
			t.Run(step+", "+how, func(t *testing.T) {
				s := newSite(t)
				tap := &intercept.Tap{}
				first := start(t, tap)
				ends := func(change func()) {
					tap.Forget()
					defer tap.On(c.stuck, hook)()
					change()
					controlplane.Eventually(t, func() error {
						if tap.Count(c.stuck) == 0 {
							return errors.New("it has not come to that yet")
						}
						return nil
					})
					if err := first.Stop(); err != nil {
						t.Fatal(err)
					}
					start(t, nil)
				}
				deletes := func() { s.remove(s.object("IPAddressClaim", "m-0")) }
				if c.deletion {
					s.claim("m-0")
					s.answered("m-0")
					ends(deletes)
				} else {
					ends(func() { s.claim("m-0") })
					s.answered("m-0")
					if n := s.leases(); n != 1 {
						t.Errorf("%d leases", n)
					}
					deletes()
				}
				s.becomes(s.prefix+"1", "Available")
				s.gone("IPAddress", "m-0")
			})
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A claim is deleted while its IPAddress is being made: whether that comes to be or not, the address goes back.
func TestDeletedMeanwhile(t *testing.T) {
	install(t, "v1beta2")
	for how, then := range map[string]intercept.Hook{
		"made":       func(r *http.Request, next http.RoundTripper) (*http.Response, error) { return next.RoundTrip(r) },
		"unanswered": intercept.LoseAnswer(errors.New("the connection is cut")),
		"refused":    intercept.Answer(http.StatusForbidden, metav1.StatusReasonForbidden, 0),
	} {
		t.Run(how, func(t *testing.T) {
			s := newSite(t)
			tap, gate := &intercept.Tap{}, intercept.NewGate()
			here := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/"+s.namespace+"/") }
			tap.On(intercept.All(intercept.Of("ipaddresses"), intercept.Method(http.MethodPost), here),
				func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
					return gate.Hold(r, roundTripper(func(r *http.Request) (*http.Response, error) { return then(r, next) }))
				})
			start(t, tap)
			claim := s.claim("m-0")
			<-gate.Arrived()
			if state, _ := s.lease(s.prefix + "1"); state != "Active" {
				t.Errorf("the address is %s before its IPAddress is made", state)
			}
			s.remove(claim)
			s.gone("IPAddressClaim", "m-0")
			gate.Open()
			s.becomes(s.prefix+"1", "Available")
			s.gone("IPAddress", "m-0")
		})
	}
}

// Many more claims than addresses: each address is of one claim, those who wait get what others give back, and waiting
// costs no requests.
func TestManyClaimsForFewAddresses(t *testing.T) {
	controlplane.TakesLong(t)
	install(t, "v1beta2")
	tap := &intercept.Tap{}
	start(t, tap)
	s := newSite(t, func(p *v1.BCSNetPool) { p.Spec.AvailableIPs = []string{p.Spec.Net + "/25"} })
	const claims, addresses = 1000, 127 // the network's own address is none
	for i := range claims {
		s.claim(fmt.Sprintf("m-%d", i))
	}
	look := func() (who map[string]string, waiting int) {
		who = map[string]string{}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(s.object("IPAddressClaim", "").GroupVersionKind())
		if err := admin.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
		for _, u := range list.Items {
			conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			if len(conditions) > 0 && conditions[0].(map[string]any)["reason"] == "PoolExhausted" {
				waiting++
			}
		}
		list.SetGroupVersionKind(s.object("IPAddress", "").GroupVersionKind())
		if err := admin.List(t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
		for _, u := range list.Items {
			if u.GetDeletionTimestamp() != nil {
				continue
			}
			a, _, _ := unstructured.NestedString(u.Object, "spec", "address")
			if other, twice := who[a]; twice {
				t.Errorf("%s is of %s and %s", a, other, u.GetName())
			}
			who[a] = u.GetName()
		}
		return who, waiting
	}
	settle := func(waiting int) (who map[string]string) {
		controlplane.Eventually(t, func() error {
			have, wait := look()
			if who = have; len(have) != addresses || wait != waiting {
				return fmt.Errorf("%d claims have addresses, and %d wait", len(have), wait)
			}
			return nil
		})
		return who
	}
	first := settle(claims - addresses)
	tap.Forget()
	for _, name := range first {
		s.remove(s.object("IPAddressClaim", name))
	}
	settle(claims - 2*addresses)
	if n := s.leases(); n != addresses {
		t.Errorf("%d leases", n)
	}
	count := func(matches ...intercept.Match) int { return tap.Count(intercept.All(matches...)) }
	if n := count(intercept.Of("ipaddressclaims"), intercept.Writes); n > 3*addresses {
		t.Errorf("%d writes of claims for %d new answers", n, addresses)
	}
	if n := count(intercept.Of("ipaddresses"), intercept.Method(http.MethodGet)); n > 6*addresses {
		t.Errorf("%d reads of IPAddresses for %d new answers", n, addresses)
	}
	if n := count(intercept.Of("bcsnetips"), intercept.Writes); n > 3*addresses {
		t.Errorf("%d writes of leases for %d that changed hands", n, addresses)
	}
}

// A pool that is deleted gives no new addresses and stays until the claims that have some are gone.
func TestPoolGoes(t *testing.T) {
	install(t, "v1beta2")
	start(t, nil)
	s := newSite(t)
	claim := s.claim("m-0")
	has := s.answered("m-0")
	pool := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: s.pool}}
	s.remove(pool)
	s.claim("m-1")
	s.refused("m-1", "PoolNotReady", s.pool)
	if state, _ := s.lease(has); state != "Active" || s.condition("m-0") != "True/Ready" {
		t.Errorf("address %s is %s, and the claim is %s", has, state, s.condition("m-0"))
	}
	s.remove(claim)
	s.gone("IPAddress", "m-0")
	controlplane.Eventually(t, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(pool), pool); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the pool is there: %w", err)
		}
		return nil
	})
	s.newPool(s.pool)
	s.answered("m-1")
}

// leases counts the leases of the site's pool that are in use.
func (s *site) leases() (n int) {
	s.Helper()
	var all v1.BCSNetIPList
	if err := admin.List(s.Context(), &all); err != nil {
		s.Fatal(err)
	}
	for _, o := range all.Items {
		if o.Spec.Pool == s.pool && o.Status.Status == v1.IPActive {
			n++
		}
	}
	return n
}

// Two replicas, and claims all the while: the leader is killed in the middle. Each claim has an address of its own.
func TestTwoReplicas(t *testing.T) {
	install(t, "v1beta2")
	_ = account(t)
	s := newSite(t, func(p *v1.BCSNetPool) { p.Spec.AvailableIPs = []string{p.Spec.Net + "/25"} })
	var replicas []*controlplane.Controller
	for range 2 {
		c, err := cluster.StartController(t.Context(), controlplane.ControllerOptions{
			Args: []string{"--cluster-api", "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s",
				"--leader-elect-retry-period=200ms"},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Stop() })
		replicas = append(replicas, c)
	}
	const claims = 60
	name := func(i int) string { return fmt.Sprintf("m-%d", i) }
	for i := range claims {
		s.claim(name(i))
		if i == claims/3 {
			s.answered(name(0))
			if err := replicas[0].Kill(); err != nil { // the first one leads
				t.Fatal(err)
			}
		}
	}
	who := map[string]string{}
	for i := range claims {
		a := s.answered(name(i))
		if other, twice := who[a]; twice {
			t.Errorf("%s is of %s and %s", a, other, name(i))
		}
		who[a] = name(i)
		if _, owner := s.lease(a); owner != "capi/"+s.namespace+"/"+name(i) {
			t.Errorf("the lease of %s is of %s", a, owner)
		}
	}
	if n := s.leases(); n != claims {
		t.Errorf("%d leases for %d claims", n, claims)
	}
	for i := range claims {
		s.remove(s.object("IPAddressClaim", name(i)))
	}
	controlplane.EventuallyWithin(t, time.Minute, func() error {
		if n := s.leases(); n > 0 {
			return fmt.Errorf("%d leases are left", n)
		}
		return nil
	})
}

// Cluster API is installed while the controller runs, and its claims are answered.
func TestInstalledLater(t *testing.T) {
	controlplane.TakesLong(t)
	uninstall(t)
	start(t, nil)
	s := newSite(t)
	install(t, "v1beta2")
	s.claim("m-0")
	s.answered("m-0")
}

// A namespace that is deleted takes its claims, and their addresses go back.
func TestNamespaceGoes(t *testing.T) {
	install(t, "v1beta2")
	start(t, nil)
	s := newSite(t)
	s.claim("m-0")
	has := s.answered("m-0")
	// No controller manager runs here: this is what it does of a namespace.
	for _, kind := range []string{"IPAddressClaim", "IPAddress"} {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(s.object(kind, "").GroupVersionKind())
		if err := admin.DeleteAllOf(s.Context(), u, client.InNamespace(s.namespace)); err != nil {
			t.Fatal(err)
		}
	}
	s.becomes(has, "Available")
	s.gone("IPAddress", "m-0")
}

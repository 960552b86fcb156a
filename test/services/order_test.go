package services_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// guard fails the test if an address is freed while any Service shows it, also one that is being deleted.
func guard(t *testing.T, tap *intercept.Tap) (frees *atomic.Int32) {
	t.Helper()
	frees = &atomic.Int32{}
	tap.On(intercept.All(intercept.Of("bcsnetips"), intercept.Method(http.MethodPut)),
		func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			if !strings.Contains(string(body), `"owner"`) {
				frees.Add(1)
				address := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
				var all corev1.ServiceList
				if err := admin.List(t.Context(), &all); err != nil {
					t.Error(err)
				}
				for _, o := range all.Items {
					if slices.ContainsFunc(o.Status.LoadBalancer.Ingress,
						func(i corev1.LoadBalancerIngress) bool { return i.IP == address }) {
						t.Errorf("%s is freed while Service %s/%s shows it", address, o.Namespace, o.Name)
					}
				}
			}
			return next.RoundTrip(r)
		})
	return frees
}

// An address is never free while a Service shows it, whatever becomes of the Services.
func TestShownAddressesAreHeld(t *testing.T) {
	tap := &intercept.Tap{}
	start(t, tap, func(o *controller.Options) { o.ServicesKubeVIP = true })
	frees := guard(t, tap)
	s := newSite(t)
	s.service("web")
	s.has("web", s.prefix+"1")
	s.change("web", `{"spec":{"loadBalancerIP":"`+s.prefix+`4"}}`)
	s.has("web", s.prefix+"4")
	s.held(s.prefix+"1", "")
	s.remove("web")
	s.gone("web")
	for _, name := range []string{"a", "b", "c"} { // three that share go at once
		s.service(name, sharing("k", int32(80+name[0]), corev1.ProtocolTCP))
		s.has(name, s.prefix+"1")
	}
	for _, name := range []string{"a", "b", "c"} {
		s.remove(name)
	}
	for _, name := range []string{"a", "b", "c"} {
		s.gone(name)
	}
	s.held(s.prefix+"1", "")

	// One loses its key while what it asks for cannot be read; the holder goes.
	s.service("h", sharing("k", 80, corev1.ProtocolTCP))
	s.has("h", s.prefix+"1")
	s.service("s", sharing("k", 443, corev1.ProtocolTCP))
	s.has("s", s.prefix+"1")
	s.change("s", `{"metadata":{"annotations":{"`+workload.SharingAnnotation+`":null,"`+workload.AddressAnnotation+`":"nonsense"}}}`)
	s.remove("h")
	s.gone("h")
	controlplane.Eventually(t, func() error {
		shown := s.shown("s")
		state, owner := s.lease(s.prefix + "1")
		if len(shown) == 0 && state == "Available" ||
			slices.Equal(shown, []string{s.prefix + "1"}) && owner == "service/"+s.namespace+"/s" {
			return nil
		}
		return fmt.Errorf("s shows %v, and the address is %s (%s)", shown, state, owner)
	})
	s.remove("s")
	s.gone("s")
	if frees.Load() < 3 {
		t.Errorf("only %d addresses were freed", frees.Load())
	}
}

// Another controller writes beside our address: we step back, and take along what is ours alone.
func TestOthersBeside(t *testing.T) {
	s := newSite(t)
	s.service("web", classless)
	start(t, nil, func(o *controller.Options) { o.ServicesDefaultClass = true })
	s.has("web", s.prefix+"1")
	o := s.get("web")
	o.Status.LoadBalancer.Ingress = append(o.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{Hostname: "lb.example.com"})
	if err := admin.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s.untouched("web", "lb.example.com")
	s.held(s.prefix+"1", "")
}

// A Service that came with an address keeps it, also if new Services would get it first.
func TestArrivals(t *testing.T) {
	s := newSite(t)
	for i := range 3 {
		s.service(fmt.Sprintf("new-%d", i), classless)
	}
	s.service("old", classless)
	o := s.get("old")
	o.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: s.prefix + "1"}}
	if err := admin.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	start(t, nil, func(o *controller.Options) { o.ServicesDefaultClass = true })
	s.has("old", s.prefix+"1")
	for i := range 3 {
		s.has(fmt.Sprintf("new-%d", i))
	}
	s.held(s.prefix+"1", "old")
}

// Who holds an address stays; who shares it and does not fit any more leaves it, also if nobody looked when that was
// changed. One that asks for another address keeps what it shares until it can have that.
func TestSharersLeave(t *testing.T) {
	first := start(t, nil)
	s := newSite(t)
	s.service("h", sharing("k", 80, corev1.ProtocolTCP))
	s.has("h", s.prefix+"1")
	s.service("s", sharing("k", 443, corev1.ProtocolTCP))
	s.has("s", s.prefix+"1")
	s.service("taken", asking(s.prefix+"3"))
	s.has("taken", s.prefix+"3")
	s.change("s", `{"spec":{"loadBalancerIP":"`+s.prefix+`3"}}`)
	s.refused("s", "AddressInUse", "taken", s.prefix+"1")
	s.change("s", `{"spec":{"loadBalancerIP":null}}`)
	s.has("s", s.prefix+"1")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	s.change("s", `{"spec":{"ports":[{"port":80}]}}`)
	start(t, nil)
	s.refused("s", "SharingConflict", "h has the address")
	s.has("h", s.prefix+"1")
	s.held(s.prefix+"1", "h")
}

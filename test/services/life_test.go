package services_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// A Service gets an address of the pool that its namespace names, by one write of ours, and two of its status. It gives
// the address back when it is deleted.
func TestGiven(t *testing.T) {
	tap := &intercept.Tap{}
	start(t, tap)
	s := newSite(t)
	s.settled() // the pool is ready
	tap.Forget()
	s.service("web")
	s.has("web", s.prefix+"1")
	s.held(s.prefix+"1", "web")
	s.settled()
	for name, want := range map[string]int{s.prefix + "1": 1, "web": 2} {
		if n := tap.Count(intercept.All(intercept.Of(name), intercept.Writes)); n != want {
			t.Errorf("%d writes of %s, want %d", n, name, want)
		}
	}
	if o := s.get("web"); !slices.Contains(o.Finalizers, finalizer) {
		t.Errorf("finalizers %v", o.Finalizers)
	}
	s.remove("web")
	s.gone("web")
	s.held(s.prefix+"1", "")
}

// Services that are none of ours stay as they are: of other types, of other classes, without a class.
func TestOthersServices(t *testing.T) {
	start(t, nil)
	s := newSite(t)
	s.service("plain", func(o *corev1.Service) { o.Spec.Type, o.Spec.LoadBalancerClass = corev1.ServiceTypeClusterIP, nil })
	s.service("ports", func(o *corev1.Service) { o.Spec.Type, o.Spec.LoadBalancerClass = corev1.ServiceTypeNodePort, nil })
	s.service("headless", func(o *corev1.Service) {
		o.Spec.Type, o.Spec.LoadBalancerClass, o.Spec.ClusterIP = corev1.ServiceTypeClusterIP, nil, corev1.ClusterIPNone
	})
	s.service("other", func(o *corev1.Service) { o.Spec.LoadBalancerClass = new("example.com/other") })
	s.service("classless", classless)
	s.settled()
	for _, name := range []string{"plain", "ports", "headless", "other", "classless"} {
		s.untouched(name)
	}
	if n := s.leases(); n != 0 {
		t.Errorf("%d leases", n)
	}
}

// The type of a Service changes away, which gives its address back, and to our class again; and to another class, whose
// status is never written.
func TestTypeChanges(t *testing.T) {
	first := start(t, nil)
	s := newSite(t)
	s.service("web")
	s.has("web", s.prefix+"1")
	if err := admin.Patch(t.Context(), s.object("web"), client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"loadBalancerClass":"example.com/other"}}`))); err == nil {
		t.Fatal("the class of a LoadBalancer could be changed")
	}
	s.away("web")
	s.untouched("web")
	s.held(s.prefix+"1", "")
	s.back("web", workload.ServiceClass)
	s.has("web", s.prefix+"1")

	// All at once, for a controller that is down meanwhile.
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	s.away("web")
	s.back("web", "example.com/other")
	o := s.get("web")
	o.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	if err := admin.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	start(t, nil)
	s.held(s.prefix+"1", "")
	s.untouched("web", "192.0.2.7")
}

// A controller that is the default serves Services without a class, but none that another controller serves already.
// One that is the default no more keeps what it gave.
func TestDefaultClass(t *testing.T) {
	s := newSite(t)
	s.service("taken", classless)
	for name, ingress := range map[string]corev1.LoadBalancerIngress{
		"address": {IP: "192.0.2.7"}, "host": {Hostname: "lb.example.com"}, "moved": {IP: s.prefix + "3"},
	} {
		s.service(name, classless)
		o := s.get(name)
		o.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{ingress}
		if err := admin.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	first := start(t, nil, func(o *controller.Options) { o.ServicesDefaultClass = true })
	s.has("taken", s.prefix+"1")
	s.has("moved", s.prefix+"3") // it is one of ours, and stays
	s.held(s.prefix+"3", "moved")
	s.settled()
	s.untouched("address", "192.0.2.7")
	s.untouched("host", "lb.example.com")

	// Another controller comes along later: it has the word.
	o := s.get("moved")
	o.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}
	if err := admin.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s.untouched("moved", "192.0.2.9")
	s.held(s.prefix+"3", "")

	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	start(t, nil)
	s.settled()
	s.has("taken", s.prefix+"1")
	s.held(s.prefix+"1", "taken")
}

// What others write into the status of a Service of our class is put right, and what they say of an address stays.
func TestStatusOfOthers(t *testing.T) {
	start(t, nil)
	s := newSite(t)
	s.service("web")
	s.has("web", s.prefix+"1")
	proxy := corev1.LoadBalancerIPModeProxy
	for _, wrong := range [][]corev1.LoadBalancerIngress{
		nil, {{IP: "192.0.2.7"}}, {{IP: s.prefix + "1", IPMode: &proxy}, {IP: s.prefix + "2"}},
	} {
		controlplane.Eventually(t, func() error {
			o := s.get("web")
			o.Status.LoadBalancer.Ingress = wrong
			return admin.Status().Update(t.Context(), o)
		})
		s.has("web", s.prefix+"1")
	}
	if i := s.get("web").Status.LoadBalancer.Ingress[0]; i.IPMode == nil || *i.IPMode != proxy {
		t.Errorf("the mode of the address is %v", i.IPMode)
	}
}

// A Service asks for an address, by the field or an annotation. It keeps what it has until it can have the other one.
func TestAddressAskedFor(t *testing.T) {
	tap := &intercept.Tap{}
	start(t, tap)
	s := newSite(t)
	s.service("field", asking(s.prefix+"3"))
	s.has("field", s.prefix+"3")
	s.service("annotation", annotated(workload.AddressAnnotation, s.prefix+"4"))
	s.has("annotation", s.prefix+"4")
	s.service("metallb", annotated("metallb.io/loadBalancerIPs", s.prefix+"2"))
	s.has("metallb", s.prefix+"2")
	s.service("wants", asking(s.prefix+"3"))
	s.refused("wants", "AddressInUse", "service/"+s.namespace+"/field")
	s.service("nowhere", asking("10.250.0.1"))
	s.refused("nowhere", "AddressNotInPool", "10.250.0.1")
	s.service("twice", asking(s.prefix+"1"), annotated(workload.AddressAnnotation, s.prefix+"2"))
	s.refused("twice", "InvalidAnnotation", "spec.loadBalancerIP says")
	s.service("family", asking("fd00::1"))
	s.refused("family", "InvalidAnnotation", "do not have IPv6")
	var events eventsv1.EventList
	controlplane.Eventually(t, func() error {
		if err := admin.List(t.Context(), &events, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.Name == "wants" && e.Reason == "AddressInUse" && e.Type == corev1.EventTypeWarning {
				return nil
			}
		}
		return errors.New("there is no event")
	})

	// It waits, and writes nothing meanwhile.
	s.settled()
	tap.Forget()
	s.settled()
	if n := tap.Count(intercept.All(intercept.Of("wants"), intercept.Writes)); n > 0 {
		t.Errorf("%d writes of one that waits", n)
	}
	s.change("field", `{"spec":{"loadBalancerIP":"`+s.prefix+`2"}}`)
	s.refused("field", "AddressInUse", "metallb", s.prefix+"3")
	s.held(s.prefix+"3", "field")
	s.change("metallb", `{"metadata":{"annotations":{"metallb.io/loadBalancerIPs":"`+s.prefix+`1"}}}`)
	s.has("metallb", s.prefix+"1")
	s.has("field", s.prefix+"2")
	s.has("wants", s.prefix+"3")
	s.change("wants", `{"spec":{"loadBalancerIP":null}}`) // nothing else is asked for
	s.settled()
	s.has("wants", s.prefix+"3")
	if n := s.leases(); n != 4 {
		t.Errorf("%d leases", n)
	}
}

// Services have addresses by their families, and by what changes of these.
func TestFamilies(t *testing.T) {
	start(t, nil)
	s := newSite(t)
	v6 := s.ipv6()
	s.service("both", families(corev1.IPFamilyPolicyRequireDualStack, corev1.IPv6Protocol, corev1.IPv4Protocol))
	s.has("both", v6+"1", s.prefix+"1")
	s.service("six", families(corev1.IPFamilyPolicySingleStack, corev1.IPv6Protocol))
	s.has("six", v6+"2")
	s.service("more", families(corev1.IPFamilyPolicySingleStack, corev1.IPv4Protocol))
	s.has("more", s.prefix+"2")

	// IPv6 is full: who requires both has none of the two, and who has one keeps it.
	s.service("requires", families(corev1.IPFamilyPolicyRequireDualStack, corev1.IPv4Protocol, corev1.IPv6Protocol))
	s.refused("requires", "PoolExhausted", s.pool+"-6")
	s.service("prefers", families(corev1.IPFamilyPolicyPreferDualStack, corev1.IPv4Protocol, corev1.IPv6Protocol))
	s.has("prefers", s.prefix+"3")
	s.change("more", `{"spec":{"ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv4","IPv6"]}}`)
	s.refused("more", "PoolExhausted", s.pool+"-6", s.prefix+"2")
	if n := s.leases(); n != 5 {
		t.Errorf("%d leases", n)
	}
	s.remove("requires")
	s.gone("requires")
	s.remove("prefers")
	s.gone("prefers")
	s.remove("six")
	s.has("more", s.prefix+"2", v6+"2")
	s.change("more", `{"spec":{"ipFamilyPolicy":"SingleStack","ipFamilies":["IPv4"]}}`)
	s.has("more", s.prefix+"2")
	s.held(v6+"2", "")
	s.service("late", families(corev1.IPFamilyPolicyPreferDualStack, corev1.IPv6Protocol, corev1.IPv4Protocol))
	s.has("late", v6+"2", s.prefix+"3")
}

// A Service draws from the pool that it names, before that of its namespace, and moves to another one that it names.
func TestPools(t *testing.T) {
	start(t, nil)
	s := newSite(t, func(p *v1.BCSNetPool) { p.Spec.MaxPerNamespace = 2 })
	s.second("other-" + s.pool)
	s.service("web", annotated(workload.PoolAnnotation, "other-"+s.pool))
	s.has("web", s.prefix+"11")
	s.change("web", `{"metadata":{"annotations":{"`+workload.PoolAnnotation+`":"`+s.pool+`"}}}`)
	s.has("web", s.prefix+"1")
	s.held(s.prefix+"11", "")
	s.service("second")
	s.has("second", s.prefix+"2")
	s.service("third")
	s.refused("third", "QuotaExceeded", s.namespace)
	s.change("second", `{"spec":{"loadBalancerIP":"`+s.prefix+`4"}}`) // one for another
	s.has("second", s.prefix+"4")
	// The namespace's word is for new addresses.
	s.patch(&corev1.Namespace{ObjectMeta: s.named(s.namespace)}, `{"metadata":{"annotations":{"`+workload.PoolAnnotation+`":"none"}}}`)
	s.service("fourth")
	s.refused("fourth", "NotFound", "none")
	s.has("second", s.prefix+"4")
	s.patch(&corev1.Namespace{ObjectMeta: s.named(s.namespace)}, `{"metadata":{"annotations":{"`+workload.PoolAnnotation+`":null}}}`)
	s.service("fifth")
	s.refused("fifth", "PoolNotNamed", workload.PoolAnnotation)
	s.service("sixth", asking(s.prefix+"12")) // the address says it
	s.has("sixth", s.prefix+"12")

	bound := newSite(t, func(p *v1.BCSNetPool) { p.Spec.Namespaces = []string{"elsewhere"} })
	bound.service("web")
	bound.refused("web", "NamespaceNotServed", bound.pool)
	bound.patch(&v1.BCSNetPool{ObjectMeta: s.named(bound.pool)}, `{"spec":{"namespaces":[]}}`)
	bound.has("web", bound.prefix+"1")
	bound.patch(&v1.BCSNetPool{ObjectMeta: s.named(bound.pool)}, `{"spec":{"cordoned":true}}`)
	bound.service("late")
	bound.refused("late", "PoolCordoned", bound.pool)
	bound.has("web", bound.prefix+"1")
	bound.patch(&v1.BCSNetPool{ObjectMeta: s.named(bound.pool)}, `{"spec":{"cordoned":false}}`)
	bound.has("late", bound.prefix+"2")
}

// kube-vip's annotation has the addresses, if that is asked for.
func TestKubeVIP(t *testing.T) {
	start(t, nil, func(o *controller.Options) { o.ServicesKubeVIP = true })
	s := newSite(t)
	v6 := s.ipv6()
	s.service("web", families(corev1.IPFamilyPolicyRequireDualStack, corev1.IPv4Protocol, corev1.IPv6Protocol))
	s.has("web", s.prefix+"1", v6+"1")
	vips := func(want string) {
		t.Helper()
		controlplane.Eventually(t, func() error {
			if got := s.get("web").Annotations["kube-vip.io/loadbalancerIPs"]; got != want {
				return fmt.Errorf("kube-vip is told %q, want %q", got, want)
			}
			return nil
		})
	}
	vips(s.prefix + "1," + v6 + "1")
	s.change("web", `{"spec":{"loadBalancerIP":"`+s.prefix+`4"}}`)
	vips(s.prefix + "4," + v6 + "1")
	s.away("web")
	vips("")
}

// Package services_test runs the lives of Services of type LoadBalancer against a real, dual-stack API server.
package services_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
	"github.com/bcsnet/bcsnet/test/intercept"
)

const finalizer = "service.kubernetes.io/load-balancer-cleanup"

var (
	cluster *controlplane.ControlPlane
	admin   client.Client
)

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, &cluster,
		controlplane.WithArgs("kube-apiserver", "--service-cluster-ip-range=10.96.0.0/16,fd00:96::/112")))
}

var prepared = sync.OnceValue(func() (err error) {
	admin, err = cluster.Prepare(context.Background(), "services")
	return err
})

// account is the identity that the controller has.
func account(t *testing.T) *rest.Config {
	t.Helper()
	if err := prepared(); err != nil {
		t.Fatal(err)
	}
	cfg, err := cluster.ServiceAccountConfig(t.Context(), controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// start runs a controller with --services for one test. The tap sees its requests; nil for none.
func start(t *testing.T, tap *intercept.Tap, changes ...func(*controller.Options)) *inprocess.Controller {
	t.Helper()
	return inprocess.Tapped(t, account(t), tap, func(o *controller.Options) {
		o.LeaderElect, o.Services = false, true
		for _, change := range changes {
			change(o)
		}
	})
}

// site is a namespace that names a pool of its own.
type site struct {
	*testing.T
	namespace, pool, prefix string
}

var sites atomic.Int32

// newSite makes a pool of four IPv4 addresses, after changes of its object. No host draws from it.
func newSite(t *testing.T, changes ...func(*v1.BCSNetPool)) *site {
	t.Helper()
	_ = account(t)
	n := sites.Add(1)
	s := &site{T: t, namespace: fmt.Sprintf("shop-%d", n), prefix: fmt.Sprintf("10.%d.0.", 100+n)}
	s.pool = s.namespace
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: s.namespace, Annotations: map[string]string{workload.PoolAnnotation: s.pool},
	}})
	s.newPool(s.pool, changes...)
	return s
}

func (s *site) newPool(name string, changes ...func(*v1.BCSNetPool)) *v1.BCSNetPool {
	s.Helper()
	p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
		Net: s.prefix + "0", Mask: 24, AvailableIPs: []string{s.prefix + "1-" + s.prefix + "4"},
		AllocationOrder: v1.AllocationLowest,
	}}
	for _, change := range changes {
		change(p)
	}
	s.create(p)
	return p
}

// second makes another pool, of the addresses 11 to 14.
func (s *site) second(name string) {
	s.newPool(name, func(p *v1.BCSNetPool) { p.Spec.AvailableIPs = []string{s.prefix + "11-" + s.prefix + "14"} })
}

// ipv6 makes the namespace name a pool of IPv6 addresses, too, and returns their prefix.
func (s *site) ipv6() (prefix string) {
	s.Helper()
	prefix = "fd00:" + strings.Split(s.prefix, ".")[1] + "::"
	s.newPool(s.pool+"-6", func(p *v1.BCSNetPool) {
		p.Spec.Net, p.Spec.Mask, p.Spec.AvailableIPs = prefix, 64, []string{prefix + "1-" + prefix + "2"}
	})
	s.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}},
		`{"metadata":{"annotations":{"`+workload.PoolAnnotation+`":"`+s.pool+","+s.pool+`-6"}}}`)
	return prefix
}

func (s *site) create(o client.Object) {
	s.Helper()
	if err := admin.Create(s.Context(), o); err != nil {
		s.Fatalf("%T %s: %v", o, o.GetName(), err)
	}
}

// service makes a Service of our class, after changes of its object.
func (s *site) service(name string, changes ...func(*corev1.Service)) {
	s.Helper()
	o := s.object(name)
	class := workload.ServiceClass
	o.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: &class, Selector: map[string]string{"app": name},
		Ports: []corev1.ServicePort{{Port: 80}},
	}
	for _, change := range changes {
		change(o)
	}
	s.create(o)
}

func annotated(key, value string) func(*corev1.Service) {
	return func(o *corev1.Service) { metav1.SetMetaDataAnnotation(&o.ObjectMeta, key, value) }
}

func asking(address string) func(*corev1.Service) {
	return func(o *corev1.Service) { o.Spec.LoadBalancerIP = address }
}

func families(policy corev1.IPFamilyPolicy, all ...corev1.IPFamily) func(*corev1.Service) {
	return func(o *corev1.Service) { o.Spec.IPFamilyPolicy, o.Spec.IPFamilies = &policy, all }
}

// sharing makes a Service share an address by a key, with one port.
func sharing(key string, port int32, protocol corev1.Protocol) func(*corev1.Service) {
	return func(o *corev1.Service) {
		annotated(workload.SharingAnnotation, key)(o)
		o.Spec.Ports = []corev1.ServicePort{{Port: port, Protocol: protocol}}
	}
}

func classless(o *corev1.Service) { o.Spec.LoadBalancerClass = nil }

func (s *site) object(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
}

func (s *site) patch(o client.Object, text string) {
	s.Helper()
	if err := admin.Patch(s.Context(), o, client.RawPatch("application/merge-patch+json", []byte(text))); err != nil {
		s.Fatal(err)
	}
}

func (s *site) change(name, text string) {
	s.Helper()
	s.patch(s.object(name), text)
}

// away makes a Service one without addresses, and back makes it one of our class again.
func (s *site) away(name string) {
	s.Helper()
	s.change(name, `{"spec":{"type":"ClusterIP","loadBalancerClass":null,"externalTrafficPolicy":null}}`)
}

func (s *site) back(name, class string) {
	s.Helper()
	s.change(name, `{"spec":{"type":"LoadBalancer","loadBalancerClass":"`+class+`"}}`)
}

func (s *site) remove(name string) {
	s.Helper()
	if err := client.IgnoreNotFound(admin.Delete(s.Context(), s.object(name))); err != nil {
		s.Fatal(err)
	}
}

// get reads a Service; nil for none.
func (s *site) get(name string) *corev1.Service {
	s.Helper()
	o := s.object(name)
	switch err := admin.Get(s.Context(), client.ObjectKeyFromObject(o), o); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		s.Fatal(err)
	}
	return o
}

// shown are the addresses in the status of a Service.
func (s *site) shown(name string) (all []string) {
	s.Helper()
	if o := s.get(name); o != nil {
		for _, i := range o.Status.LoadBalancer.Ingress {
			all = append(all, i.IP+i.Hostname)
		}
	}
	return all
}

// condition is what a Service says of its addresses: status and reason; empty for nothing.
func (s *site) condition(name string) (says, message string) {
	s.Helper()
	if o := s.get(name); o != nil {
		if c := meta.FindStatusCondition(o.Status.Conditions, workload.ServiceCondition); c != nil {
			return string(c.Status) + "/" + c.Reason, c.Message
		}
	}
	return "", ""
}

// has waits until a Service says that it has its addresses, which are the given ones, and returns them. None given
// stands for any.
func (s *site) has(name string, want ...string) (all []string) {
	s.Helper()
	controlplane.Eventually(s.T, func() error {
		says, message := s.condition(name)
		all = s.shown(name)
		if says != "True/Given" || len(all) == 0 || len(want) > 0 && !slices.Equal(all, want) {
			return fmt.Errorf("service %s is %s (%s), with %v, want %v", name, says, message, all, want)
		}
		return nil
	})
	return all
}

// refused waits until a Service says a reason, whose message has some words, and shows the given addresses.
func (s *site) refused(name, reason, word string, shown ...string) {
	s.Helper()
	controlplane.Eventually(s.T, func() error {
		says, message := s.condition(name)
		if all := s.shown(name); says != "False/"+reason || !strings.Contains(message, word) || !slices.Equal(all, shown) {
			return fmt.Errorf("service %s is %s (%s), with %v", name, says, message, all)
		}
		return nil
	})
}

// untouched waits until nothing of ours is in a Service.
func (s *site) untouched(name string, shown ...string) {
	s.Helper()
	controlplane.Eventually(s.T, func() error {
		o := s.get(name)
		says, _ := s.condition(name)
		if all := s.shown(name); says != "" || len(o.Finalizers) > 0 || !slices.Equal(all, shown) {
			return fmt.Errorf("service %s is %s, with %v and finalizers %v", name, says, all, o.Finalizers)
		}
		return nil
	})
}

// gone waits until a Service is gone.
func (s *site) gone(name string) {
	s.Helper()
	controlplane.Eventually(s.T, func() error {
		if o := s.get(name); o != nil {
			return fmt.Errorf("service %s is there, with finalizers %v", name, o.Finalizers)
		}
		return nil
	})
}

// settled waits until the controller has done what it does about all that happened before: a Service that is made now
// has an address.
func (s *site) settled() {
	s.Helper()
	other := newSite(s.T)
	other.service("last")
	other.has("last")
}

// lease reads the lease of an address: its state and its owner.
func (s *site) lease(address string) (state, owner string) {
	s.Helper()
	var o v1.BCSNetIP
	key := client.ObjectKey{Name: ipaddr.ObjectName(netip.MustParseAddr(address))}
	switch err := admin.Get(s.Context(), key, &o); {
	case apierrors.IsNotFound(err):
		return "Available", ""
	case err != nil:
		s.Fatal(err)
	}
	return string(o.Status.Status), o.Status.Owner
}

// held waits until a Service holds an address; the empty name stands for nobody.
func (s *site) held(address, name string) {
	s.Helper()
	want := "Active service/" + s.namespace + "/" + name
	if name == "" {
		want = "Available "
	}
	controlplane.Eventually(s.T, func() error {
		if state, owner := s.lease(address); state+" "+owner != want {
			return fmt.Errorf("address %s is %s (%s), want %s", address, state, owner, want)
		}
		return nil
	})
}

// leases counts the leases of the site's pools that are in use.
func (s *site) leases() (n int) {
	s.Helper()
	var all v1.BCSNetIPList
	if err := admin.List(s.Context(), &all); err != nil {
		s.Fatal(err)
	}
	for _, o := range all.Items {
		if strings.HasPrefix(o.Spec.Pool, s.pool) && o.Status.Status == v1.IPActive {
			n++
		}
	}
	return n
}

func (s *site) named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

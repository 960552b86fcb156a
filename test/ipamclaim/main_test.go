// Package ipamclaim_test runs the sequences of machines whose addresses are kept by IPAMClaims, against a real API
// server that has the CRD of the Network Plumbing Working Group as its module publishes it.
package ipamclaim_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
	"github.com/bcsnet/bcsnet/test/plugin"
)

var (
	cluster *controlplane.ControlPlane
	admin   client.Client
	caller  = &http.Client{Transport: &http.Transport{}}
)

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

var prepared = sync.OnceValue(func() (err error) {
	admin, err = cluster.Prepare(context.Background(), "ipamclaims")
	return err
})

// account is the identity that the controller has.
func account(t *testing.T) *rest.Config {
	t.Helper()
	if err := prepared(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(caller.CloseIdleConnections)
	cfg, err := cluster.ServiceAccountConfig(t.Context(), controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// start runs a controller with --ipam-claims for one test.
func start(t *testing.T) *inprocess.Controller {
	t.Helper()
	return inprocess.ForTest(t, account(t), func(o *controller.Options) {
		o.LeaderElect, o.IPAMClaims = false, true
		o.CollectEvery, o.CollectAfter = time.Second, 2*time.Second // as it is shipped, each test would take a minute
	})
}

// form changes the published CRD into that of another release.
type form func(crd map[string]any)

// asPublished is the release that the module file names: ownerPod is an object, and there are conditions.
func asPublished(map[string]any) {}

// asInTheBeginning has the addresses alone.
func asInTheBeginning(crd map[string]any) {
	status := properties(crd, "status")
	delete(status, "ownerPod")
	delete(status, "conditions")
}

// withRequests is a later form: ipRequests, and ownerPod as a text, which is required.
func withRequests(crd map[string]any) {
	properties(crd, "spec")["ipRequests"] = map[string]any{
		"type": "array", "maxItems": int64(2), "items": map[string]any{
			"type": "string", "x-kubernetes-validations": []any{map[string]any{"rule": "isCIDR(self)",
				"message": "CIDR is invalid"}},
		},
		"x-kubernetes-validations": []any{map[string]any{"rule": "self == oldSelf",
			"message": "IPRequests are immutable"}},
	}
	status := properties(crd, "status")
	status["ownerPod"] = map[string]any{"type": "string"}
	within(crd, "status")["required"] = []any{"ips", "ownerPod"}
}

// unchecked is withRequests by somebody who left the rules out.
func unchecked(crd map[string]any) {
	withRequests(crd)
	properties(crd, "spec")["ipRequests"] = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
}

func within(crd map[string]any, part string) map[string]any {
	version := crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	all := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)
	return all[part].(map[string]any)
}

func properties(crd map[string]any, part string) map[string]any {
	return within(crd, part)["properties"].(map[string]any)
}

// published reads the CRD from the module that defines IPAMClaims.
var published = sync.OnceValues(func() ([]byte, error) {
	file, err := controlplane.IPAMClaimCRD()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// install installs the CRD in a form, or changes it into that, and waits until the API server serves it.
func install(t *testing.T, as form) {
	t.Helper()
	_ = account(t)
	text, err := published()
	if err != nil {
		t.Fatal(err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &crd.Object); err != nil {
		t.Fatal(err)
	}
	as(crd.Object)
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(crd.GroupVersionKind())
	controlplane.Eventually(t, func() error {
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(crd), now)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			crd.SetResourceVersion("")
			return admin.Create(t.Context(), crd)
		}
		if now.GetDeletionTimestamp() != nil {
			return errors.New("the old CRD is still there")
		}
		crd.SetResourceVersion(now.GetResourceVersion())
		return admin.Update(t.Context(), crd)
	})
	_, requests := properties(crd.Object, "spec")["ipRequests"]
	controlplane.Eventually(t, func() error {
		out, err := cluster.Kubectl(t.Context(), "get", "ipamclaims.k8s.cni.cncf.io", "-A", "-o",
			"name").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return serves(t.Context(), requests)
	})
}

// serves checks that the API server knows the fields of a form: for a moment after a change it drops those that are
// new.
func serves(ctx context.Context, requests bool) error {
	o := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"interface": ifName, "network": "probe", "ipRequests": []any{"10.0.0.1/24"}},
	}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1alpha1", Kind: "IPAMClaim"})
	o.SetNamespace(metav1.NamespaceDefault)
	o.SetName("probe")
	if err := admin.Create(ctx, o, client.DryRunAll); err != nil {
		return err
	}
	_, known, err := unstructured.NestedSlice(o.Object, "spec", "ipRequests")
	if err == nil && known != requests {
		err = fmt.Errorf("the API server knows spec.ipRequests: %t", known)
	}
	return err
}

// uninstall deletes the CRD, and waits until that is done.
func uninstall(t *testing.T) {
	t.Helper()
	_ = account(t)
	out, err := cluster.Kubectl(t.Context(), "delete", "crd", "ipamclaims.k8s.cni.cncf.io", "--ignore-not-found").
		CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// site is where a test has its machines: a namespace with a pool of its own, and two hosts.
type site struct {
	*testing.T
	url             string
	namespace, pool string
}

const hostA, hostB = "10.9.0.11", "10.9.0.12"

var sites struct {
	sync.Mutex
	n int
}

// newSite makes a pool of some IPv4 addresses, and one of as many IPv6 addresses if wanted, of one network.
func newSite(t *testing.T, url string, families ...string) *site {
	t.Helper()
	sites.Lock()
	sites.n++
	n := sites.n
	sites.Unlock()
	s := &site{T: t, url: url, namespace: fmt.Sprintf("machines-%d", n), pool: fmt.Sprintf("machines-%d", n)}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	if len(families) == 0 {
		families = []string{"v4"}
	}
	for _, f := range families {
		spec := v1.BCSNetPoolSpec{
			Net: fmt.Sprintf("10.%d.0.0", 100+n), Mask: 24, Gateway: fmt.Sprintf("10.%d.0.254", 100+n), Network: s.pool,
			AvailableIPs: []string{fmt.Sprintf("10.%d.0.1-10.%d.0.20", 100+n, 100+n)},
			Hosts:        []string{hostA, hostB}, Namespaces: []string{s.namespace},
		}
		if f == "v6" {
			spec.Net, spec.Mask = fmt.Sprintf("2001:db8:%d::", n), 64
			spec.Gateway = fmt.Sprintf("2001:db8:%d::fffe", n)
			spec.AvailableIPs = []string{fmt.Sprintf("2001:db8:%d::1-2001:db8:%d::20", n, n)}
		}
		s.create(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: s.pool + "-" + f}, Spec: spec})
	}
	return s
}

// address is the n-th IPv4 address of the site.
func (s *site) address(n int) string {
	return fmt.Sprintf("10.%s.0.%d", fmt.Sprint(100+s.number()), n)
}

func (s *site) number() (n int) {
	_, _ = fmt.Sscanf(s.namespace, "machines-%d", &n)
	return n
}

func (s *site) create(o client.Object) {
	s.Helper()
	if err := admin.Create(s.Context(), o); err != nil {
		s.Fatalf("%T %s: %v", o, o.GetName(), err)
	}
}

const ifName = "pod16367aacb67"

// claim makes an IPAMClaim for the interface of a machine, with the addresses that it asks for.
func (s *site) claim(name string, requests ...string) *unstructured.Unstructured {
	s.Helper()
	spec := map[string]any{"interface": ifName, "network": "tenantred"}
	if len(requests) > 0 {
		var all []any
		for _, r := range requests {
			all = append(all, r)
		}
		spec["ipRequests"] = all
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1alpha1", Kind: "IPAMClaim"})
	o.SetNamespace(s.namespace)
	o.SetName(name)
	s.create(o)
	return o
}

// unclaim deletes an IPAMClaim.
func (s *site) unclaim(name string) {
	s.Helper()
	out, err := cluster.Kubectl(s.Context(), "delete", "ipamclaim", "-n", s.namespace, name).CombinedOutput()
	if err != nil {
		s.Fatalf("%v: %s", err, out)
	}
}

// launcher is a pod that runs a machine, as KubeVirt makes it.
type launcher struct {
	*site
	pod             *corev1.Pod
	host, container string
}

// networks is the annotation of a launcher whose interface has an IPAMClaim.
func networks(claim string) string {
	return `[{"name":"tenantred","namespace":"default","interface":"` + ifName + `","ipam-claim-reference":"` + claim + `"}]`
}

// launch makes a launcher with an annotation for Multus, after changes of its object.
func (s *site) launch(host, annotation string, changes ...func(*corev1.Pod)) *launcher {
	s.Helper()
	grace := int64(1)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, GenerateName: "virt-launcher-vm-",
			Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": annotation},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-" + host, Containers: []corev1.Container{{Name: "compute", Image: "c"}},
			TerminationGracePeriodSeconds: &grace,
		},
	}
	for _, change := range changes {
		change(p)
	}
	s.create(p)
	s.Cleanup(func() { _ = admin.Delete(context.Background(), p, client.GracePeriodSeconds(0)) })
	return &launcher{site: s, pod: p, host: host, container: uuid.NewString()}
}

func (l *launcher) ask(method, ifName string) plugin.Answer {
	l.Helper()
	a, err := plugin.Ask(l.Context(), caller, method, l.url, wire.AllocateRequest{
		Host: l.host, ContainerID: l.container, PodName: l.pod.Name, PodNamespace: l.namespace,
		PodUID: string(l.pod.UID),
		IfName: ifName,
	})
	if err != nil {
		l.Fatal(err)
	}
	return a
}

// add asks for the addresses of the machine's interface, and wants some.
func (l *launcher) add() []string {
	l.Helper()
	a := l.ask(http.MethodPost, ifName)
	if a.Reason != "" {
		l.Fatalf("ADD: %s: %s", a.Reason, a.Message)
	}
	return addresses(a)
}

// addSoon asks again while the address is on its way from another pod.
func (l *launcher) addSoon() (all []string) {
	l.Helper()
	controlplane.Eventually(l.T, func() error {
		a := l.ask(http.MethodPost, ifName)
		if a.Reason != "" {
			return fmt.Errorf("%s: %s", a.Reason, a.Message)
		}
		all = addresses(a)
		return nil
	})
	return all
}

func addresses(a plugin.Answer) (all []string) {
	for _, addr := range a.Addrs() {
		all = append(all, addr.String())
	}
	return all
}

// refused asks, and wants a refusal of a reason whose message has some parts.
func (l *launcher) refused(reason ipam.Reason, parts ...string) {
	l.Helper()
	if err := refusedWith(l.ask(http.MethodPost, ifName), reason, parts...); err != nil {
		l.Error(err)
	}
}

func refusedWith(a plugin.Answer, reason ipam.Reason, parts ...string) error {
	if a.Reason != reason {
		return fmt.Errorf("got %q (%s), want %s", a.Reason, a.Message, reason)
	}
	for _, part := range parts {
		if !strings.Contains(a.Message, part) {
			return fmt.Errorf("%s: %q has no %q", a.Reason, a.Message, part)
		}
	}
	return nil
}

// stop ends the pod as a kubelet does: DEL, then the object goes.
func (l *launcher) stop() {
	l.Helper()
	if a := l.ask(http.MethodDelete, ifName); a.Reason != "" {
		l.Fatalf("DEL: %s: %s", a.Reason, a.Message)
	}
	l.vanish()
}

// vanish takes the pod's object away, and nothing is said to the controller.
func (l *launcher) vanish() {
	l.Helper()
	if err := admin.Delete(l.Context(), l.pod, client.GracePeriodSeconds(0)); err != nil {
		l.Fatal(err)
	}
}

// status is what an IPAMClaim is to show.
type status struct {
	ips, ownerPod, condition string
}

// shows waits until an IPAMClaim shows a status. ownerPod is read in whichever form it has.
func (s *site) shows(name string, want status) {
	s.Helper()
	controlplane.Eventually(s.T, func() error {
		got, err := s.shown(name)
		if err == nil && got != want {
			err = fmt.Errorf("the IPAMClaim shows %+v, want %+v", got, want)
		}
		return err
	})
}

func (s *site) shown(name string) (got status, err error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1alpha1", Kind: "IPAMClaim"})
	if err := admin.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, o); err != nil {
		return got, err
	}
	ips, _, err := unstructured.NestedStringSlice(o.Object, "status", "ips")
	slices.Sort(ips)
	got.ips = strings.Join(ips, " ")
	if name, found, err := unstructured.NestedString(o.Object, "status", "ownerPod", "name"); err == nil && found {
		got.ownerPod = name
	} else if name, found, err := unstructured.NestedString(o.Object, "status", "ownerPod"); err == nil && found {
		got.ownerPod = name
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == "IPsAllocated" {
			got.condition = fmt.Sprintf("%s/%s", c["status"], c["reason"])
		}
	}
	return got, err
}

// leased returns the object of an address.
func (s *site) leased(address string) (*v1.BCSNetIP, error) {
	var o v1.BCSNetIP
	err := admin.Get(s.Context(), client.ObjectKey{Name: ipaddr.ObjectName(netip.MustParseAddr(address))}, &o)
	return &o, err
}

// becomes waits until an address has a state.
func (s *site) becomes(address, state string) {
	s.Helper()
	controlplane.EventuallyWithin(s.T, 2*time.Minute, func() error {
		o, err := s.leased(address)
		if err == nil && string(o.Status.Status) != state {
			err = fmt.Errorf("address %s is %s, want %s", address, o.Status.Status, state)
		}
		return err
	})
}

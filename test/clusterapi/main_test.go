// Package clusterapi_test runs the sequences of Cluster API's IPAM contract against a real API server that has Cluster
// API's own CustomResourceDefinitions, as its module publishes them.
package clusterapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
	"github.com/bcsnet/bcsnet/test/intercept"
)

var (
	cluster *controlplane.ControlPlane
	admin   client.Client
	// served is the version of the contract that the CRDs have at present.
	served string
)

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

var prepared = sync.OnceValue(func() (err error) {
	admin, err = cluster.Prepare(context.Background(), "clusterapi")
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

// start runs a controller with --cluster-api for one test. The tap sees its requests; nil for none.
func start(t *testing.T, tap *intercept.Tap, changes ...func(*controller.Options)) *inprocess.Controller {
	t.Helper()
	return inprocess.Tapped(t, account(t), tap, func(o *controller.Options) {
		o.LeaderElect, o.ClusterAPI = false, true
		for _, change := range changes {
			change(o)
		}
	})
}

// install installs the CRDs with one version of the contract alone, and waits until the API server serves it.
func install(t *testing.T, version string) {
	t.Helper()
	_ = account(t)
	if served == version {
		return
	}
	uninstall(t)
	all, err := controlplane.ClusterAPICRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		if err != nil {
			t.Fatal(err)
		}
		var kept []any
		for _, v := range versions {
			if v := v.(map[string]any); v["name"] == version {
				v["storage"], v["served"] = true, true
				kept = append(kept, v)
			}
		}
		if err := unstructured.SetNestedSlice(crd.Object, kept, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		if err := admin.Create(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
	}
	served = version
	for _, kind := range []string{"IPAddressClaim", "IPAddress", "Cluster"} {
		controlplane.Eventually(t, func() error { _, err := listed(t, kind); return err })
	}
}

// listed returns all objects of a kind of Cluster API. kubectl would remember the version that was served before.
func listed(t *testing.T, kind string) ([]unstructured.Unstructured, error) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind((&site{}).object(kind, "").GroupVersionKind())
	err := admin.List(t.Context(), list)
	return list.Items, err
}

// uninstall takes the CRDs away, with all their objects.
func uninstall(t *testing.T) {
	t.Helper()
	_ = account(t)
	for _, kind := range []string{"IPAddress", "IPAddressClaim"} {
		if served == "" {
			break
		}
		all, err := listed(t, kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range all {
			(&site{T: t}).patch(&u, `{"metadata":{"finalizers":[]}}`)
		}
	}
	for _, crd := range []string{
		"ipaddressclaims.ipam.cluster.x-k8s.io", "ipaddresses.ipam.cluster.x-k8s.io", "clusters.cluster.x-k8s.io",
	} {
		out, err := cluster.Kubectl(t.Context(), "delete", "crd", crd, "--ignore-not-found").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	served = ""
}

// site is a namespace with a pool of its own.
type site struct {
	*testing.T
	namespace, pool, prefix string
}

var sites atomic.Int32

// newSite makes a pool of four IPv4 addresses, after changes of its object. No host draws from it.
func newSite(t *testing.T, changes ...func(*v1.BCSNetPool)) *site {
	t.Helper()
	n := sites.Add(1)
	s := &site{T: t, namespace: fmt.Sprintf("fleet-%d", n), prefix: fmt.Sprintf("10.%d.%d.", 100+n/250, n%250)}
	s.pool = s.namespace
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	s.newPool(s.pool, changes...)
	return s
}

func (s *site) newPool(name string, changes ...func(*v1.BCSNetPool)) {
	s.Helper()
	p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
		Net: s.prefix + "0", Mask: 24, Gateway: s.prefix + "254", AvailableIPs: []string{s.prefix + "1-" + s.prefix + "4"},
		AllocationOrder: v1.AllocationLowest,
	}}
	for _, change := range changes {
		change(p)
	}
	s.create(p)
}

func (s *site) create(o client.Object) {
	s.Helper()
	if err := admin.Create(s.Context(), o); err != nil {
		s.Fatalf("%T %s: %v", o, o.GetName(), err)
	}
}

// object returns an object of Cluster API in the version that is served.
func (s *site) object(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	group := "ipam.cluster.x-k8s.io"
	if kind == "Cluster" {
		group = "cluster.x-k8s.io"
	}
	u.SetAPIVersion(group + "/" + served)
	u.SetKind(kind)
	u.SetNamespace(s.namespace)
	u.SetName(name)
	return u
}

func (s *site) poolRef(kind, name string) map[string]any {
	return map[string]any{"apiGroup": v1.GroupVersion.Group, "kind": kind, "name": name}
}

// claim makes a claim of the site's pool, after changes of its object.
func (s *site) claim(name string, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	s.Helper()
	u := s.object("IPAddressClaim", name)
	u.Object["spec"] = map[string]any{"poolRef": s.poolRef("BCSNetPool", s.pool)}
	for _, change := range changes {
		change(u)
	}
	s.create(u)
	return u
}

// ofPool makes a claim ask for another pool, inCluster makes it belong to a Cluster.
func ofPool(name string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, name, "spec", "poolRef", "name")
	}
}

func inCluster(name string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, name, "spec", "clusterName")
	}
}

// cluster makes a Cluster.
func (s *site) cluster(name string, paused bool) {
	s.Helper()
	u := s.object("Cluster", name)
	// The definition wants one of the two that a Cluster is made from.
	u.Object["spec"] = map[string]any{"paused": paused, "controlPlaneEndpoint": map[string]any{"host": "h", "port": int64(1)}}
	s.create(u)
}

func (s *site) pause(name string, paused bool) {
	s.Helper()
	s.patch(s.object("Cluster", name), fmt.Sprintf(`{"spec":{"paused":%t}}`, paused))
}

func (s *site) patch(o client.Object, text string) {
	s.Helper()
	if err := admin.Patch(s.Context(), o, client.RawPatch("application/merge-patch+json", []byte(text))); err != nil {
		s.Fatal(err)
	}
}

func (s *site) remove(o client.Object) {
	s.Helper()
	if err := client.IgnoreNotFound(admin.Delete(s.Context(), o)); err != nil {
		s.Fatal(err)
	}
}

// get reads an object of Cluster API; nil for none.
func (s *site) get(kind, name string) *unstructured.Unstructured {
	s.Helper()
	u := s.object(kind, name)
	switch err := admin.Get(s.Context(), client.ObjectKeyFromObject(u), u); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		s.Fatal(err)
	}
	return u
}

// answered waits until a claim names an IPAddress of its own name, and returns the address in that.
func (s *site) answered(name string) (addr string) {
	s.Helper()
	controlplane.Eventually(s.T, func() error {
		if got := s.condition(name); got != "True/Ready" {
			return fmt.Errorf("claim %s is %s", name, got)
		}
		if ref, _, _ := unstructured.NestedString(s.get("IPAddressClaim", name).Object, "status", "addressRef",
			"name"); ref != name {
			return fmt.Errorf("claim %s names the address %q", name, ref)
		}
		u := s.get("IPAddress", name)
		if u == nil {
			return errors.New("there is no IPAddress " + name)
		}
		addr, _, _ = unstructured.NestedString(u.Object, "spec", "address")
		return nil
	})
	return addr
}

// refused waits until a claim says a reason, whose message has some words.
func (s *site) refused(name, reason string, words ...string) {
	s.Helper()
	controlplane.Eventually(s.T, func() error {
		if got := s.condition(name); got != "False/"+reason {
			return fmt.Errorf("claim %s is %s, want %s", name, got, reason)
		}
		return nil
	})
	conditions, _, _ := unstructured.NestedSlice(s.get("IPAddressClaim", name).Object, "status", "conditions")
	for _, word := range words {
		if message := conditions[0].(map[string]any)["message"].(string); !strings.Contains(message, word) {
			s.Errorf("claim %s: %q has no %q", name, message, word)
		}
	}
}

// condition is the condition Ready of a claim: its status and reason; empty for none.
func (s *site) condition(name string) string {
	u := s.get("IPAddressClaim", name)
	if u == nil {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == "Ready" {
			return fmt.Sprintf("%s/%s", c["status"], c["reason"])
		}
	}
	return ""
}

// settled waits until the controller has done what it does about all that happened before: a claim that is made now is
// answered.
func (s *site) settled() {
	s.Helper()
	other := newSite(s.T)
	other.claim("last")
	other.answered("last")
}

// lease reads the lease of an address: its state and its owner.
func (s *site) lease(address string) (state, owner string) {
	s.Helper()
	var o v1.BCSNetIP
	key := client.ObjectKey{Name: ipaddr.ObjectName(netip.MustParseAddr(address))}
	if err := admin.Get(s.Context(), key, &o); err != nil {
		s.Fatal(err)
	}
	return string(o.Status.Status), o.Status.Owner
}

// becomes waits until the lease of an address has a state.
func (s *site) becomes(address, state string) {
	s.Helper()
	controlplane.Eventually(s.T, func() error {
		if got, owner := s.lease(address); got != state {
			return fmt.Errorf("address %s is %s (%s), want %s", address, got, owner, state)
		}
		return nil
	})
}

// gone waits until an object of Cluster API is gone.
func (s *site) gone(kind, name string) {
	s.Helper()
	controlplane.Eventually(s.T, func() error {
		if u := s.get(kind, name); u != nil {
			return fmt.Errorf("%s %s is there, with finalizers %v", kind, name, u.GetFinalizers())
		}
		return nil
	})
}

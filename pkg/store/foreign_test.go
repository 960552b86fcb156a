package store

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// A later release has fields that this one does not know. They outlast every write of this one, while
// both run side by side: allocation, rebinding, release, and the change of a pool.
func TestFieldsOfALaterReleaseAreKept(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t) // its CRD is not that of the other tests
	if err := cp.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg, err := cp.ServiceAccountConfig(t.Context(), controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		t.Fatal(err)
	}
	h, err := rest.HTTPClientFor(cp.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	admin, err := dynamic.NewForConfigAndClient(cp.Config, h)
	if err != nil {
		t.Fatal(err)
	}
	c := connectTo(t, cfg, index.New())
	feed := NewFeed(c)
	start(t, feed)
	controlplane.Until(t, "the feed has a list", feed.Synced)
	l := write(t, c, available(subnet()(1)))
	objects := admin.Resource(v1.GroupVersion.WithResource(v1.IPResource))
	extend(t, admin, "spec", "tier", map[string]any{"type": "string"})
	extend(t, admin, "status", "quarantine", map[string]any{
		"type": "object", "x-kubernetes-preserve-unknown-fields": true,
	})

	// A watch that was open when the CRD changed goes on without the new fields until the API server ends
	// it, a second later.
	n := 0
	controlplane.Until(t, "the index sees the new fields", func() bool {
		n++
		later := fmt.Sprintf(
			`{"spec":{"tier":"gold"},"status":{"podName":"pod-%d","quarantine":{"until":"tomorrow","why":[{"a":1.5,"id":9007199254740993}]}}}`, n)
		o, err := objects.Patch(t.Context(), ipaddr.ObjectName(l.Addr), "application/merge-patch+json", []byte(later),
			metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		controlplane.Until(t, "the watch delivers the change", func() bool {
			var ok bool
			l, ok = c.index.Leases.Get(l.Addr)
			return ok && strconv.FormatUint(l.Version, 10) == o.GetResourceVersion()
		})
		return l.Foreign
	})
	check := func(after string) {
		t.Helper()
		o, err := objects.Get(t.Context(), ipaddr.ObjectName(l.Addr), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		tier, _, _ := unstructured.NestedString(o.Object, "spec", "tier")
		got, _, _ := unstructured.NestedMap(o.Object, "status", "quarantine")
		want := map[string]any{"until": "tomorrow", "why": []any{map[string]any{"a": 1.5, "id": int64(9007199254740993)}}}
		if diff := cmp.Diff(want, got); diff != "" || tier != "gold" {
			t.Errorf("after %s: tier %q, quarantine -want +got:\n%s", after, tier, diff)
		}
	}
	l = write(t, c, active(t, l, "c1"))
	check("an allocation")
	l = write(t, c, active(t, l, "c1"))
	moved, _ := lease.Refresh(l, lease.Params{Pool: "q", Bits: 25, Gateway: params.Gateway})
	l = write(t, c, moved)
	check("a change of the pool")
	released, _ := lease.Release(l, now(), lease.Change{})
	l = write(t, c, released)
	check("a release")
	if l.State != lease.Available || l.Pool != "q" || l.ContainerID != "" || l.HeldFinalizer {
		t.Errorf("our own fields: %+v", l)
	}
}

// extend adds a property to the CRD, as a later release would.
func extend(t *testing.T, admin dynamic.Interface, under, name string, property map[string]any) {
	t.Helper()
	crds := admin.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	crd, err := crds.Get(t.Context(), v1.IPResource+"."+v1.GroupVersion.Group, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedMap(versions[0].(map[string]any), property,
		"schema", "openAPIV3Schema", "properties", under, "properties", name); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if _, err := crds.Update(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

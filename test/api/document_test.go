package api

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// The samples of the bcs-netservice-controller document, with digits for xx, go through kubectl as
// people have them, the second time without a change.
func TestDocumentSamplesApply(t *testing.T) {
	c := connect(t)
	file := filepath.Join("testdata", "document.yaml")
	t.Cleanup(func() {
		for _, o := range []client.Object{pool(), address("10.0.0.20")} {
			if err := c.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})
	const name = "networkextension.bkbcs.tencent.com/10.0.0."
	for _, outcome := range []string{"created", "unchanged"} {
		got, err := kubectl(t, "apply", "-f", file)
		want := "bcsnetpool." + name + "0 " + outcome + "\nbcsnetip." + name + "20 " + outcome + "\n"
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("kubectl apply: %v (-want +got):\n%s", err, diff)
		}
	}
}

func TestCRDsAreEstablished(t *testing.T) {
	for _, resource := range []string{v1.PoolResource, v1.IPResource, v1.ClaimResource, v1.HistoryResource} {
		out, err := kubectl(t, "wait", "--for=condition=Established", "--timeout=10s", "crd/"+resource+"."+
			v1.GroupVersion.Group)
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		out, err = kubectl(t, "get", "crd", resource+"."+v1.GroupVersion.Group, "-o",
			`jsonpath={.status.conditions[?(@.type=="NonStructuralSchema")].message}`)
		if err != nil || out != "" {
			t.Errorf("%s: %v: %s", resource, err, out)
		}
	}
}

func TestKustomization(t *testing.T) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	out, err := kubectl(t, "apply", "--server-side", "--dry-run=server", "--force-conflicts", "-k",
		filepath.Join(root, "config", "crd"), "-o", "name")
	want := "customresourcedefinition.apiextensions.k8s.io/bcsnethistories.networkextension.bkbcs.tencent.com\n" +
		"customresourcedefinition.apiextensions.k8s.io/bcsnetipclaims.networkextension.bkbcs.tencent.com\n" +
		"customresourcedefinition.apiextensions.k8s.io/bcsnetips.networkextension.bkbcs.tencent.com\n" +
		"customresourcedefinition.apiextensions.k8s.io/bcsnetpools.networkextension.bkbcs.tencent.com\n"
	if diff := cmp.Diff(want, out); diff != "" || err != nil {
		t.Errorf("kubectl apply -k: %v (-want +got):\n%s", err, diff)
	}
}

func TestLongestPoolName(t *testing.T) {
	c := connect(t)
	p := pool()
	p.Name = strings.Repeat("a", 253)
	create(t, c, p)
	got := &v1.BCSNetPool{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: p.Name}, got); err != nil {
		t.Error(err)
	}
}

func TestDefaults(t *testing.T) {
	c := connect(t)
	p := pool()
	create(t, c, p)
	if p.Spec.Materialize != v1.MaterializeAuto {
		t.Errorf("materialize = %q, want Auto", p.Spec.Materialize)
	}
	// Neither an absent status nor one without the word leaves an address without a state.
	for _, manifest := range []string{
		`{"apiVersion":"networkextension.bkbcs.tencent.com/v1","kind":"BCSNetIP","metadata":{"name":"10.0.0.20"},"spec":{"pool":"p","mask":24,"gateway":"10.0.0.1"}}`,
		`{"apiVersion":"networkextension.bkbcs.tencent.com/v1","kind":"BCSNetIP","metadata":{"name":"10.0.0.20"},"spec":{"pool":"p","mask":24,"gateway":"10.0.0.1"},"status":{"host":"10.0.0.11"}}`,
	} {
		got, err := kubectlInput(t, manifest, "create", "--dry-run=server", "-o", "jsonpath={.status.status}", "-f", "-")
		if err != nil || got != "Available" {
			t.Errorf("status.status = %q, %v; want Available", got, err)
		}
	}
}

// A BCSNetIP has no status subresource: finalizer, label and lease change in one write.
func TestOneWriteChangesFinalizerAndLease(t *testing.T) {
	c := connect(t)
	ip := address("10.0.0.20")
	create(t, c, ip)
	version := ip.ResourceVersion

	ip.Finalizers = []string{v1.HeldFinalizer}
	ip.Labels = map[string]string{"held": "yes"}
	ip.Status = v1.BCSNetIPStatus{Status: v1.IPActive, ContainerID: "c1", Host: "10.0.0.11"}
	if err := c.Update(t.Context(), ip); err != nil {
		t.Fatal(err)
	}
	held := &v1.BCSNetIP{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(ip), held); err != nil {
		t.Fatal(err)
	}
	if held.Status.ContainerID != "c1" || len(held.Finalizers) != 1 || held.Labels["held"] != "yes" ||
		held.Generation != 2 {
		t.Errorf("after one update: generation %d, finalizers %v, labels %v, status %+v", held.Generation, held.Finalizers,
			held.Labels, held.Status)
	}
	if err := c.Status().Update(t.Context(), held); !apierrors.IsNotFound(err) {
		t.Errorf("update of the status subresource: %v, want NotFound", err)
	}

	stale := held.DeepCopy()
	stale.ResourceVersion = version
	if err := c.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("update with an old resource version: %v, want Conflict", err)
	}
	held.Finalizers, held.Status = nil, v1.BCSNetIPStatus{}
	if err := c.Update(t.Context(), held); err != nil || held.Status.Status != v1.IPAvailable {
		t.Errorf("release: %v, status %q; want Available", err, held.Status.Status)
	}
}

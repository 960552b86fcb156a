package http_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// While the CRD of the addresses is being deleted the API server forbids to make one. No role is missing: the
// answer says what goes on, and that the request can be repeated.
func TestTerminatingCRD(t *testing.T) {
	t.Parallel()
	cp := controlplane.ForTest(t)
	if err := cp.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin := adminFor(t, cp)
	call := startFor(t, account(t, cp), nil).caller()
	pool := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1.BCSNetPoolSpec{
		Net: "10.60.0.0", Mask: 16, Gateway: "10.60.0.1", Hosts: []string{"172.16.0.11"},
		AvailableIPs: []string{"10.60.1.0-10.60.99.255"}, // not full before the API server notices that the CRD goes
		Materialize:  v1.MaterializeOnDemand,
	}}
	if err := admin.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	asked := 0
	ask := func() (answer, error) { // for another one each time: who has an address is answered by a read, which is served
		asked++
		return call.send(t.Context(), "POST", prefix, object{"host": "172.16.0.11", "owner": fmt.Sprintf("vm-%d", asked)})
	}
	// an address that is held has a finalizer: the CRD is not gone as long as it is there
	controlplane.Eventually(t, func() error {
		a, err := ask()
		if err == nil && a.Code != 0 {
			err = fmt.Errorf("%d %s", a.Status, a.Raw)
		}
		return err
	})
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	})
	crd.SetName("bcsnetips.networkextension.bkbcs.tencent.com")
	hold := client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":["customresourcecleanup.apiextensions.k8s.io","example.com/hold"]}}`))
	if err := admin.Patch(t.Context(), crd, hold); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	var last answer
	controlplane.Eventually(t, func() error {
		a, err := ask()
		if err == nil && a.Reason != "Unavailable" {
			err = fmt.Errorf("%d %s", a.Status, a.Raw)
		}
		if err == nil &&
			a.Hint != "see what holds it: kubectl get crd -o wide; when it has gone, install it again: bcsnetctl install "+
				"--crds-only" {
			err = fmt.Errorf("hint: %s", a.Raw)
		}
		last = a
		return err
	})
	if last.Status != 503 || last.Header.Get("Retry-After") == "" {
		t.Errorf("%d, Retry-After %q", last.Status, last.Header.Get("Retry-After"))
	}
}

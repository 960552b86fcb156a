package api

import (
	"errors"
	"maps"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestStoredBefore: a claim and a pool that an earlier release took, with names and a subnet that this one refuses, can
// still be changed. What is written anew follows the rules.
func TestStoredBefore(t *testing.T) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	own := controlplane.ForTest(t)
	if err := own.InstallCRDs(t.Context(), filepath.Join(root, "config", "crd")); err != nil {
		t.Fatal(err)
	}
	c := own.AdminFor(t)
	change := func(crd string, schema func(openAPI map[string]any)) {
		t.Helper()
		controlplane.Eventually(t, func() error {
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			}}
			if err := c.Get(t.Context(), client.ObjectKey{Name: crd + "." + v1.GroupVersion.Group}, o); err != nil {
				return err
			}
			versions := o.Object["spec"].(map[string]any)["versions"].([]any)
			schema(versions[0].(map[string]any)["schema"].(map[string]any))
			return c.Update(t.Context(), o)
		})
	}
	rules := map[string]any{}
	for _, crd := range []string{"bcsnetipclaims", "bcsnetpools"} {
		change(crd, func(schema map[string]any) {
			rules[crd] = (&unstructured.Unstructured{Object: schema}).DeepCopy().Object["openAPIV3Schema"]
			withoutRules(schema)
		})
	}
	const text = "a\x1b[2J"
	before := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "before"}, Spec: v1.BCSNetIPClaimSpec{
		Owner: &v1.ClaimOwner{APIVersion: "apps/v1" + text, Kind: text, Name: text}, Pool: text, SharedName: text,
		Namespaces: []string{text, "other"},
	}}
	earlier := pool(subnet("169.254.0.0", 16, "169.254.0.1"), available("169.254.0.20"))
	controlplane.Eventually(t, func() error { return c.Create(t.Context(), before) })
	controlplane.Eventually(t, func() error { return c.Create(t.Context(), earlier) })
	for crd, rule := range rules {
		change(crd, func(schema map[string]any) { schema["openAPIV3Schema"] = rule })
	}
	for _, o := range []client.Object{
		&v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "after"}, Spec: before.Spec},
		&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "after"}, Spec: earlier.Spec},
	} {
		controlplane.Eventually(t, func() error { // the rules are there again
			if err := c.Create(t.Context(), o, client.DryRunAll); !apierrors.IsInvalid(err) {
				return errors.New("it is taken")
			}
			return nil
		})
	}
	before.Labels, before.Spec.Surge = map[string]string{"a": "b"}, 3
	if err := c.Update(t.Context(), before); err != nil {
		t.Errorf("a claim that was stored before: %v", err)
	}
	before.Status.Used = 1
	if err := c.Status().Update(t.Context(), before); err != nil {
		t.Errorf("its status: %v", err)
	}
	before.Spec.Pool = "b" + text
	if err := c.Update(t.Context(), before); !apierrors.IsInvalid(err) {
		t.Errorf("another such name: %v", err)
	}
	earlier.Spec.Cordoned, earlier.Spec.AvailableIPs = true, []string{"169.254.0.20-169.254.0.30"}
	if err := c.Update(t.Context(), earlier); err != nil {
		t.Errorf("a pool that was stored before: %v", err)
	}
	earlier.Status.Active = 1
	if err := c.Status().Update(t.Context(), earlier); err != nil {
		t.Errorf("its status: %v", err)
	}
	earlier.Status.Active = 0
	if err := c.Status().Update(t.Context(), earlier); err != nil {
		t.Errorf("its status: %v", err)
	}
	subnet("224.0.0.0", 16, "224.0.0.1")(&earlier.Spec)
	if err := c.Update(t.Context(), earlier); !apierrors.IsInvalid(err) {
		t.Errorf("another such subnet: %v", err)
	}
}

// withoutRules takes the patterns for strings and the rules in CEL out of a schema.
func withoutRules(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		maps.DeleteFunc(s, func(key string, v any) bool {
			_, text := v.(string)
			return key == "pattern" && text || key == "x-kubernetes-validations"
		})
		for _, under := range s {
			withoutRules(under)
		}
	case []any:
		for _, under := range s {
			withoutRules(under)
		}
	}
}

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

// TestStoredBefore: a claim that an earlier release took, with names that this one refuses, can still be changed. What
// is written anew follows the rules.
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
	change := func(schema func(spec any)) {
		t.Helper()
		controlplane.Eventually(t, func() error {
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			}}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "bcsnetipclaims." + v1.GroupVersion.Group}, o); err != nil {
				return err
			}
			schema(o.Object["spec"])
			return c.Update(t.Context(), o)
		})
	}
	var rules any
	change(func(spec any) {
		versions := spec.(map[string]any)["versions"].([]any)
		schema := versions[0].(map[string]any)["schema"].(map[string]any)
		rules = (&unstructured.Unstructured{Object: schema}).DeepCopy().Object["openAPIV3Schema"]
		withoutPatterns(schema)
	})
	const text = "a\x1b[2J"
	before := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "before"}, Spec: v1.BCSNetIPClaimSpec{
		Owner: &v1.ClaimOwner{APIVersion: "apps/v1" + text, Kind: text, Name: text}, Pool: text, SharedName: text,
		Namespaces: []string{text, "other"},
	}}
	controlplane.Eventually(t, func() error { return c.Create(t.Context(), before) })
	change(func(spec any) {
		versions := spec.(map[string]any)["versions"].([]any)
		versions[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"] = rules
	})
	controlplane.Eventually(t, func() error { // the rules are there again
		o := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "after"}, Spec: before.Spec}
		if err := c.Create(t.Context(), o, client.DryRunAll); !apierrors.IsInvalid(err) {
			return errors.New("it is taken")
		}
		return nil
	})
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
}

// withoutPatterns takes the patterns for strings out of a schema.
func withoutPatterns(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		maps.DeleteFunc(s, func(key string, v any) bool { _, text := v.(string); return key == "pattern" && text })
		for _, under := range s {
			withoutPatterns(under)
		}
	case []any:
		for _, under := range s {
			withoutPatterns(under)
		}
	}
}

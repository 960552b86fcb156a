package api

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// What the API server takes as a cooldown is what every client can read, and at most 30 days.
func TestPoolCooldown(t *testing.T) {
	c := connect(t)
	const notDuration = "must be whole hours, minutes and seconds such as 90s, 5m or 1h30m, and at most 720h"
	for cooldown, ok := range map[string]bool{
		"0": true, "0s": true, "90s": true, "5m": true, "1h30m": true, "1h0m1s": true,
		"720h": true, "43200m": true, "2592000s": true, "720h0m0s": true,
		"720h1s": false, "43201m": false, "2592001s": false, "999h99999m9999999s": false,
		"": false, "5": false, "-5s": false, "1.5h": false, "500ms": false, "30m1h": false, "1d": false, "5 s": false, "1w": false,
	} {
		t.Run(cooldown, func(t *testing.T) {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pool())
			if err != nil {
				t.Fatal(err)
			}
			o := &unstructured.Unstructured{Object: content}
			o.SetGroupVersionKind(v1.GroupVersion.WithKind("BCSNetPool"))
			if err := unstructured.SetNestedField(o.Object, cooldown, "spec", "cooldown"); err != nil {
				t.Fatal(err)
			}
			var want []string
			if !ok {
				want = []string{fmt.Sprintf("spec.cooldown: Invalid value: %q: %s", cooldown, notDuration)}
			}
			if len(cooldown) > 16 {
				want = []string{"spec.cooldown: Too long: may not be more than 16 bytes", unchecked}
			}
			err = c.Create(t.Context(), o, client.DryRunAll)
			if diff := compare(t, want, err); diff != "" {
				t.Error(diff)
			}
			if !ok {
				return
			}
			var read v1.BCSNetPool
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &read); err != nil {
				t.Error(err)
			}
		})
	}
}

package collect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// TestWorkloadThatDoesNotAnswer: while it cannot be asked what the workload of a claim needs, as when the webhook of
// its kind is down, nothing is given back on its account. What does not depend on that goes back, and the claim says
// why.
func TestWorkloadThatDoesNotAnswer(t *testing.T) {
	controlplane.TakesLong(t)
	cfg := account(t)
	node(t, "silent", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	labels := map[string]string{"app": "silent"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "silent"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
			},
		}}
	c := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "silent"},
		Spec: v1.BCSNetIPClaimSpec{
			Owner:         &v1.ClaimOwner{APIVersion: "apps/v1", Kind: "Deployment", Name: "silent"},
			Addresses:     []string{"10.1.0.70"},
			ReleasePolicy: v1.ReleaseImmutable,
		}}
	for _, o := range []client.Object{d, c} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx := context.Background()
			noFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			if err := errors.Join(admin.Patch(ctx, o, noFinalizers), admin.Delete(ctx, o)); err != nil {
				t.Error(err)
			}
		})
	}
	for _, address := range []string{"10.1.0.70", "10.1.0.71"} {
		hold(t, address, "10.0.0.11", "", "", func(ip *v1.BCSNetIP) {
			ip.Status = v1.BCSNetIPStatus{
				Status: v1.IPReserved, Fixed: true, Claim: namespace + "/silent", UpdateTime: ip.Status.UpdateTime,
			}
		})
	}
	var silent atomic.Bool
	silent.Store(true)
	var api *intercept.API
	api = intercept.NewAPI(t, cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if silent.Load() && r.URL.Path == "/apis/apps/v1/namespaces/"+namespace+"/deployments/silent" {
			http.Error(w, "conversion webhook failed", http.StatusInternalServerError)
			return
		}
		api.Forward.ServeHTTP(w, r)
	}))
	start(t, api.Config(), nil)
	is := func(address string, want v1.IPPhase) error {
		if got := stored(t, address).Status.Status; got != want {
			return fmt.Errorf("%s is %s, want %s", address, got, want)
		}
		return nil
	}
	says := func(reason, words string) {
		t.Helper()
		controlplane.EventuallyWithin(t, patience, func() error {
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
				return err
			}
			got := meta.FindStatusCondition(c.Status.Conditions, v1.ConditionConflict)
			if got == nil || got.Reason != reason || !strings.Contains(got.Message, words) {
				return fmt.Errorf("it says %+v", got)
			}
			return nil
		})
	}
	// the claim names it no more
	controlplane.EventuallyWithin(t, patience, func() error { return is("10.1.0.71", v1.IPAvailable) })
	says(
		"WorkloadUnknown",
		"what Deployment collect/silent needs is not known, and nothing is released on its account: ")
	if err := is("10.1.0.70", v1.IPReserved); err != nil {
		t.Error(err)
	}
	if c.Status.Held != 1 {
		t.Errorf("the claim says that it holds %d, want 1", c.Status.Held)
	}
	silent.Store(false)
	controlplane.EventuallyWithin(t, patience, func() error { return is("10.1.0.70", v1.IPAvailable) })
	says(v1.ReasonNoConflict, "")
	controlplane.EventuallyWithin(t, patience, func() error {
		var all eventsv1.EventList
		if err := admin.List(t.Context(), &all, client.InNamespace(namespace)); err != nil {
			return err
		}
		for reason, kind := range map[string]string{
			"WorkloadUnknown": corev1.EventTypeWarning, v1.ReasonNoConflict: corev1.EventTypeNormal,
		} {
			if !slices.ContainsFunc(all.Items, func(e eventsv1.Event) bool {
				return e.Regarding.Name == c.Name && e.Reason == reason && e.Type == kind &&
					e.Action == v1.ConditionConflict
			}) {
				return fmt.Errorf("there is no event %s", reason)
			}
		}
		return nil
	})
}

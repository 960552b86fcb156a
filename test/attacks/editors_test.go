package attacks_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// editors are attacks by who may make pods in one namespace, or claims.
func editors() []attack {
	return []attack{
		{"pool_that_one_namespace_keeps", keepOnePodAtATime},
		{"shared_pool_of_another_namespace", anothersSharedPool},
		{"names_that_a_terminal_obeys", namesForTerminals},
	}
}

// podWith makes a pod with annotations on the victim's node, and returns the body of its ADD.
func (w *world) podWith(t *testing.T, namespace, name string, annotations map[string]string) object {
	t.Helper()
	w.create(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations},
		Spec: corev1.PodSpec{
			NodeName: nodeTheirs, ServiceAccountName: "default", Containers: []corev1.Container{{Name: "main", Image: "main"}},
		},
	})
	return with(w.add(name, theirs), "podNamespace", namespace)
}

func (w *world) adds(t *testing.T, body object) heard {
	t.Helper()
	return w.send(t, ask{token: w.theirNode, method: "POST", path: prefix, body: body})
}

func (w *world) ends(t *testing.T, body object) {
	t.Helper()
	w.send(t, ask{token: w.theirNode, method: "DELETE", path: prefix, body: body}).done(t, "DEL")
}

// One pod at a time, whose address is kept for good, leaves others without: half of the pool stays free.
func keepOnePodAtATime(t *testing.T, w *world) {
	const size, pool = 11, "networkextension.bkbcs.tencent.com/pool"
	w.create(t, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "common"}, Spec: v1.BCSNetPoolSpec{
		Net: "10.79.0.0", Mask: 24, Gateway: "10.79.0.1", Hosts: []string{theirs}, Priority: -1,
		AvailableIPs: []string{fmt.Sprintf("10.79.0.20-10.79.0.%d", 20+size-1)},
	}})
	kept := 0
	for ; kept <= size; kept++ {
		body := w.podWith(t, tenant, fmt.Sprintf("keeper-%d", kept), map[string]string{
			pool: "common", "k8s.v1.cni.galaxy.io/release-policy": "never",
		})
		h := w.adds(t, body)
		if h.Code != 0 && kept > 0 {
			h.refused(t, "a pod whose address is to be kept", ipam.ReasonQuotaExceeded)
			break
		}
		h.done(t, "a pod whose address is kept")
		w.ends(t, body)
	}
	if kept > size/2+1 {
		t.Errorf("the namespace keeps %d of %d addresses", kept, size)
	}
	w.adds(t, w.podWith(t, shop, "buyer", map[string]string{pool: "common"})).done(t, "a pod of another namespace")
	w.adds(t, w.podWith(t, tenant, "passing", map[string]string{pool: "common"})).done(t, "one that keeps nothing")
}

// The name of a shared pool gives nobody what another namespace keeps by it.
func anothersSharedPool(t *testing.T, w *world) {
	named := map[string]string{"tke.cloud.tencent.com/eni-ip-pool": "payments"}
	victim := w.podWith(t, shop, "payments-1", named)
	address := w.adds(t, victim).done(t, "ADD of the victim")["ipAddr"]
	w.ends(t, victim)
	thief := w.podWith(t, tenant, "payments-2", named)
	if got := w.adds(t, thief).done(t, "ADD of another namespace")["ipAddr"]; got == address {
		t.Errorf("it got %v, which the pool keeps for another namespace", got)
	}
	next := w.podWith(t, shop, "payments-3", named)
	if got := w.adds(t, next).done(t, "ADD of the own namespace")["ipAddr"]; got != address {
		t.Errorf("the own namespace got %v, and keeps %v", got, address)
	}
	w.ends(t, thief)
	w.ends(t, next)
}

// Names of claims that move a cursor, or turn the direction of writing, are refused.
func namesForTerminals(t *testing.T, _ *world) {
	owner := func(kind, name string) v1.BCSNetIPClaimSpec {
		return v1.BCSNetIPClaimSpec{Owner: &v1.ClaimOwner{APIVersion: "apps/v1", Kind: kind, Name: name}}
	}
	for _, text := range []string{"a\x1b[2J", "a\u202eb", "a\u200bb", "a\nb", "a\u009b"} {
		for field, spec := range map[string]v1.BCSNetIPClaimSpec{
			"owner.kind": owner(text, "web"), "owner.name": owner("Deployment", text), "pool": {Pool: text},
			"namespaces": {Namespaces: []string{text}}, "sharedName": {SharedName: text},
		} {
			o := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "terminal"}, Spec: spec}
			if err := shared.admin.Create(t.Context(), o); !apierrors.IsInvalid(err) {
				t.Errorf("%s %q: %v", field, text, err)
			}
		}
	}
	for _, name := range []string{"payments 支付", "a/b: (c)"} { // free text
		o := &v1.BCSNetIPClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, GenerateName: "free-text-"}, Spec: v1.BCSNetIPClaimSpec{SharedName: name},
		}
		if err := shared.admin.Create(t.Context(), o); err != nil {
			t.Errorf("%q: %v", name, err)
		} else if err := shared.admin.Delete(t.Context(), o); err != nil {
			t.Error(err)
		}
	}
}

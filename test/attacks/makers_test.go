package attacks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// makers are attacks by what stands in pods and claims of one namespace, and by one pod alone.
func makers() []attack {
	return []attack{
		{"owners_that_name_nothing", ownersOfNothing},
		{"interfaces_without_end", interfacesWithoutEnd},
		{"claim_on_the_pools_of_another_namespace", anothersPools},
	}
}

// Owner references lead to no path of their own, and a kind of a megabyte is nobody's. The pods get addresses as those
// without owners do.
func ownersOfNothing(t *testing.T, w *world) {
	const resource = "replicationcontrollers" // which the controller may list, and does not
	before := asked(t, resource, "LIST")
	for name, owner := range map[string]metav1.OwnerReference{
		"path":     {APIVersion: "apps/v1", Kind: "StatefulSet", Name: strings.Repeat("../", 8) + "api/v1/" + resource},
		"passing":  {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: strings.Repeat("../", 8) + "api/v1/" + resource},
		"invented": {APIVersion: "nowhere.example.org/v1", Kind: strings.Repeat("K", 1<<20), Name: "n"},
	} {
		owner.UID, owner.Controller = "u", new(true)
		w.create(t, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: tenant, Name: "owned-" + name, OwnerReferences: []metav1.OwnerReference{owner},
			},
			Spec: corev1.PodSpec{NodeName: nodeTheirs, Containers: []corev1.Container{{Name: "main", Image: "main"}}},
		})
		body := with(w.add("owned-"+name, theirs), "podNamespace", tenant)
		w.adds(t, body).done(t, "a pod whose owner is "+name)
		w.ends(t, body)
	}
	if n := asked(t, resource, "LIST") - before; n > 0 {
		t.Errorf("the API server was asked %v times for all %s", n, resource)
	}
}

// A node names one interface of its pod after the other. Each gets an address, up to as many as a pod may have.
func interfacesWithoutEnd(t *testing.T, w *world) {
	w.create(t, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "wide"}, Spec: v1.BCSNetPoolSpec{
		Net: "10.81.0.0", Mask: 24, Gateway: "10.81.0.1", Hosts: []string{theirs}, Priority: -3,
		AvailableIPs: []string{"10.81.0.10-10.81.0.250"},
	}})
	const pool, most = "networkextension.bkbcs.tencent.com/pool", 64
	body, got := w.podWith(t, shop, "many-legged", map[string]string{pool: "wide"}), 0
	for ; got <= most; got++ {
		h := w.adds(t, with(body, "ifName", fmt.Sprintf("net%d", got)))
		if h.Code != 0 && got > 0 {
			h.refused(t, "another interface", ipam.ReasonQuotaExceeded)
			break
		}
		h.done(t, "an interface")
	}
	if got != most {
		t.Errorf("one pod has addresses on %d interfaces, want %d", got, most)
	}
	w.adds(t, with(body, "ifName", "net0")).done(t, "one that has its address already")
	w.adds(t, w.podWith(t, shop, "two-legged", map[string]string{pool: "wide"})).done(t, "another pod")
	w.ends(t, body)
}

// A claim in the attacker's namespace names another namespace, and preallocates: it takes no address of a pool that is
// bound to the other.
func anothersPools(t *testing.T, w *world) {
	const bank = "bank"
	w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bank}})
	w.create(t, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: bank}, Spec: v1.BCSNetPoolSpec{
		Net: "10.82.0.0", Mask: 24, Gateway: "10.82.0.1", Hosts: []string{theirs}, Namespaces: []string{bank},
		AvailableIPs: []string{"10.82.0.10-10.82.0.19"},
	}})
	for name, spec := range map[string]v1.BCSNetIPClaimSpec{
		"by-pool":      {Pool: bank, Replicas: new(int32(8)), Namespaces: []string{bank}},
		"by-addresses": {Addresses: []string{"10.82.0.10-10.82.0.19"}, Namespaces: []string{bank}},
		"for-all":      {Pool: bank, Replicas: new(int32(8)), Namespaces: []string{"*"}},
	} {
		spec.Preallocate, spec.ReleasePolicy = true, v1.ReleaseNever
		o := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name}, Spec: spec}
		w.create(t, o)
		controlplane.Eventually(t, func() error {
			if err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			for _, c := range o.Status.Conditions {
				if c.Type == v1.ConditionPreallocated && c.Reason != v1.ReasonTaking {
					return nil
				}
			}
			return errors.New("nothing was said of what it takes")
		})
		if o.Status.Held > 0 {
			t.Errorf("claim %s took %d addresses: %v", name, o.Status.Held, o.Status.Addresses)
		}
		if err := shared.admin.Delete(t.Context(), o); err != nil {
			t.Error(err)
		}
	}
}

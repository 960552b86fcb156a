package pools_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// tenantHost draws from the pools of this test alone.
const tenantHost = "10.0.0.99"

// tenant is a namespace whose labels choose its pools.
type tenant struct {
	t    *testing.T
	name string
}

// make makes the namespace with a tier, empty for none.
func (n tenant) make(tier string) {
	n.t.Helper()
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	if tier != "" {
		o.Labels = map[string]string{"tier": tier}
	}
	if err := admin.Create(n.t.Context(), o); err != nil {
		n.t.Fatal(err)
	}
}

// label gives the namespace another tier, empty for none.
func (n tenant) label(tier string) {
	n.t.Helper()
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var o corev1.Namespace
		if err := admin.Get(n.t.Context(), client.ObjectKey{Name: n.name}, &o); err != nil {
			return err
		}
		if delete(o.Labels, "tier"); tier != "" {
			o.Labels["tier"] = tier
		}
		return admin.Update(n.t.Context(), &o)
	}); err != nil {
		n.t.Fatal(err)
	}
}

// remove deletes the namespace as its controller would.
func (n tenant) remove() {
	n.t.Helper()
	var o corev1.Namespace
	key := client.ObjectKey{Name: n.name}
	if err := admin.Get(n.t.Context(), key, &o); err != nil {
		n.t.Fatal(err)
	}
	if err := admin.Delete(n.t.Context(), &o); err != nil {
		n.t.Fatal(err)
	}
	if err := admin.Get(n.t.Context(), key, &o); err != nil {
		n.t.Fatal(err)
	}
	o.Spec.Finalizers = nil
	if err := admin.SubResource("finalize").Update(n.t.Context(), &o); err != nil {
		n.t.Fatal(err)
	}
	controlplane.Eventually(n.t, func() error {
		if err := admin.Get(n.t.Context(), key, &o); !apierrors.IsNotFound(err) {
			return fmt.Errorf("namespace %s is still there: %w", n.name, err)
		}
		return nil
	})
}

// pod makes a pod that may ask for an address, of a pool that it names if one is given.
func (n tenant) pod(name, pool string) {
	n.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	if pool != "" {
		p.Annotations = map[string]string{"networkextension.bkbcs.tencent.com/pool": pool}
	}
	if err := admin.Create(n.t.Context(), p); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = admin.Delete(context.Background(), p, client.GracePeriodSeconds(0)) })
}

// ask sends an ADD for a pod.
func (n tenant) ask(pod string) plugin.Answer {
	n.t.Helper()
	a, err := plugin.Ask(n.t.Context(), caller, http.MethodPost, controller.URL, wire.AllocateRequest{
		Host: tenantHost, ContainerID: "sandbox-" + n.name + pod, PodName: pod, PodNamespace: n.name,
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return a
}

// gets wants an address of a range for a pod. It asks again, as a kubelet does, while the labels of a namespace that
// has just been made are not known.
func (n tenant) gets(pod, prefix string) (addr string) {
	n.t.Helper()
	controlplane.Eventually(n.t, func() error {
		a := n.ask(pod)
		if a.Reason == "Unavailable" {
			return errors.New(a.Message)
		}
		if a.Code != 0 || !strings.HasPrefix(a.Address.IPAddr, prefix) {
			n.t.Fatalf("pod %s of namespace %s gets %+v, want an address in %s", pod, n.name, a, prefix)
		}
		addr = a.Address.IPAddr
		return nil
	})
	return addr
}

// TestNamespaceSelector: pools are bound to namespaces by labels, which change while pods hold addresses; a namespace
// that has a pool of its own never draws from another, and a pool that is no default serves who names it.
func TestNamespaceSelector(t *testing.T) {
	forTenants := func(change func(*v1.BCSNetPoolSpec)) func(*v1.BCSNetPoolSpec) {
		return func(s *v1.BCSNetPoolSpec) {
			if s.Hosts = []string{tenantHost}; change != nil {
				change(s)
			}
		}
	}
	open := newPool(t, "tenants", forTenants(nil), "10.160.0.1-10.160.0.20")
	gold := newPool(t, "tenants-gold", forTenants(func(s *v1.BCSNetPoolSpec) {
		s.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	}), "10.161.0.1-10.161.0.2")
	store := newPool(t, "tenants-store", forTenants(func(s *v1.BCSNetPoolSpec) { s.Default, s.Priority = new(false), 9 }),
		"10.162.0.1-10.162.0.9")
	ready := func(p *v1.BCSNetPool, words string) {
		t.Helper()
		controlplane.Eventually(t, func() error {
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
				return err
			}
			c := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionReady)
			if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, words) {
				return fmt.Errorf("pool %s: condition Ready is %+v; want %q in its message", p.Name, c, words)
			}
			return nil
		})
	}
	ready(open, "20 addresses for 1 host")
	ready(gold, "bound to no namespace at present: its selector matches none")
	ready(store, "serves only requests that name it")

	rich, poor := tenant{t, "rich"}, tenant{t, "poor"}
	rich.make("gold")
	poor.make("")
	ready(gold, "for 1 host, bound to 1 namespace, 1 of them by its selector")
	for _, pod := range []string{"a", "b", "c", "d"} {
		rich.pod(pod, "")
	}
	rich.pod("e", "tenants-store")
	poor.pod("a", "")
	poor.pod("b", "tenants-store")
	first := rich.gets("a", "10.161.")
	poor.gets("a", "10.160.")
	poor.gets("b", "10.162.")

	rich.label("") // which moves no lease
	ready(gold, "bound to no namespace at present")
	if again := rich.gets("a", "10.161."); again != first {
		t.Errorf("the pod has %s after its namespace lost the label, and had %s", again, first)
	}
	rich.gets("b", "10.160.")
	rich.label("gold")
	ready(gold, "bound to 1 namespace")
	rich.gets("c", "10.161.")
	const why = "namespace rich draws only from its own pools"
	if a := rich.ask("d"); a.Reason != "PoolExhausted" || !strings.Contains(a.Message, why) ||
		!strings.Contains(a.Message, "pool tenants-gold") {
		t.Errorf("its own is full: %+v", a)
	}
	rich.gets("e", "10.162.")

	made := tenant{t, "made-again"}
	made.make("gold")
	ready(gold, "bound to 2 namespaces, 2 of them by its selector")
	made.remove()
	ready(gold, "bound to 1 namespace, 1 of them by its selector")
	made.make("")
	made.pod("a", "")
	made.gets("a", "10.160.")
	made.label("gold")
	ready(gold, "bound to 2 namespaces, 2 of them by its selector")
	edit(t, gold, func(s *v1.BCSNetPoolSpec) { s.Namespaces, s.NamespaceSelector = []string{"poor"}, nil })
	ready(gold, "bound to 1 namespace")
	poor.pod("e", "")
	if a := poor.ask("e"); a.Reason != "PoolExhausted" {
		t.Errorf("bound by name now, and full: %+v", a)
	}
}

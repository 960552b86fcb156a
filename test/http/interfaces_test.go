package http_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

const own = "networkextension.bkbcs.tencent.com/"

// annotated makes a pod with annotations, in pairs.
func (s *site) annotated(name string, pairs ...string) *corev1.Pod {
	s.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}},
	}
	for i := 0; i < len(pairs); i += 2 {
		p.Annotations[pairs[i]] = pairs[i+1]
	}
	s.create(p)
	return p
}

// A term for an interface that the pod has not: the pod gets its addresses, and an event says that the term is ignored,
// once for each replica that sees it. If its Multus annotation says which interfaces it has, the pod is refused.
func TestTermOfNoInterface(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(8, nil)
	s.annotated("typo", own+"ip.net9", s.ip(25))
	for range 3 {
		s.add(s.request(newID(), "typo")).done(t)
	}
	var all eventsv1.EventList
	controlplane.Eventually(t, func() error {
		if err := shared.admin.List(t.Context(), &all, client.InNamespace(s.Namespace)); err != nil {
			return err
		}
		for _, e := range all.Items {
			if e.Reason == "AnnotationIgnored" && e.Regarding.Name == "typo" && e.Type == "Warning" &&
				strings.Contains(e.Note, own+"ip.net9") {
				return nil
			}
		}
		return fmt.Errorf("the events are %+v", all.Items)
	})
	s.annotated("listed", own+"ip.storage", s.ip(26), "k8s.v1.cni.cncf.io/networks", "vlan7@data")
	a := s.add(s.request(newID(), "listed"))
	if a.Code == 0 || !strings.Contains(a.Message, "storage") {
		t.Errorf("a pod whose interfaces are known: %s", a.Raw)
	}
}

// The terms of one interface differ from those of the pod's other one: it has a claim of its own, which keeps its
// address for the pod's next instance, while that of the other goes back.
func TestClaimOfAnInterface(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(8, nil)
	notes := []string{own + "release-policy.net1", "never", "k8s.v1.cni.cncf.io/networks", "vlan7@net1"}
	pod := s.annotated("db-0", notes...)
	eth0 := s.request(newID(), "db-0")
	net1 := with(eth0, "ifName", "net1")
	first := s.add(eth0).done(t)["ipAddr"].(string)
	kept := s.add(net1).done(t)["ipAddr"].(string)
	claim := stored(t, kept).Status.Claim
	if !strings.HasPrefix(claim, s.Namespace+"/pod-db-0-net1") || stored(t, first).Status.Claim == claim {
		t.Fatalf("net1 is of claim %q, eth0 of %q", claim, stored(t, first).Status.Claim)
	}
	_, name, _ := strings.Cut(claim, "/")
	controlplane.Eventually(t, func() error { // the controller makes it of the address
		var c v1.BCSNetIPClaim
		return shared.admin.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, &c)
	})
	s.del(eth0).done(t)
	if err := shared.admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	controlplane.Until(t, "eth0's address is free", func() bool {
		return stored(t, first).Status.Status == v1.IPAvailable && stored(t, kept).Status.Status == v1.IPReserved
	})
	s.given("greedy") // takes an address that is free
	s.annotated("db-0", notes...)
	next := s.request(newID(), "db-0")
	controlplane.Eventually(t, func() error { // until the new pod is known
		a := s.add(with(next, "ifName", "net1"))
		if a.Code != 0 {
			return fmt.Errorf("%s", a.Raw)
		}
		if got := a.done(t)["ipAddr"]; got != kept {
			t.Errorf("net1 of the next instance has %v, want %s", got, kept)
		}
		return nil
	})
}

// Annotations of 64 KiB, of each kind that is read and of keys that are nearly ours: the pod is served or refused in a
// sentence, and whoever asks beside it is served.
func TestLargeAnnotations(t *testing.T) {
	t.Parallel()
	const size, maxMessage = 64 << 10, 4 << 10
	s := newSite(t)
	s.pool(250-20, nil)
	fill := func(word string) string { return strings.Repeat(word, size/len(word)) }
	values := map[string]string{"x": fill("x"), "words": fill("a,"), "slashes": fill("/"), "list": "[" + fill("1,") + "1]"}
	keys := []string{
		own + "ips", own + "ip.net1", own + "pool.storage", own + "nothing", "k8s.v1.cni.cncf.io/networks",
		workload.NetworkStatus, "kubectl.kubernetes.io/last-applied-configuration",
	}
	for _, a := range workload.Annotations() {
		keys = append(keys, a.Key)
	}
	for i, key := range keys {
		for kind, value := range values {
			name := fmt.Sprintf("large-%d-%s", i, kind)
			s.annotated(name, key, value)
			a := s.add(s.request(newID(), name))
			if a.Status != 200 || len(a.Raw) > maxMessage || a.Code == 2 && a.Reason == "Internal" {
				t.Errorf("%s of %s: %d, %d bytes: %.300s", key, kind, a.Status, len(a.Raw), a.Raw)
			}
		}
	}
	// One that says something true in 64 KiB is followed.
	s.annotated("true", own+"ip", fill("10.99.0.1,")+s.ip(240))
	if got := s.add(s.request(newID(), "true")); got.Code == 0 && got.done(t)["ipAddr"] != s.ip(240) || len(got.Raw) > maxMessage {
		t.Errorf("%.300s", got.Raw)
	}
	s.given("beside")
}

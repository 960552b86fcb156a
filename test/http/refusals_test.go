package http_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// Why an address is not given: the pod.
func TestPodsThatGetNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(2, nil)
	s.add(s.request(newID(), "ghost")).refusedWith(t, "PodNotFound", "pod "+s.Namespace+"/ghost")

	pod := s.pod("web-0")
	s.add(with(s.request(newID(), "web-0"), "podUID", "another")).
		refusedWith(t, "PodReplaced", s.Namespace+"/web-0", string(pod.UID), "another")
	s.add(with(s.request(newID(), "web-0"), "podUID", string(pod.UID))).done(t)

	for name, phase := range map[string]corev1.PodPhase{"done": corev1.PodSucceeded, "failed": corev1.PodFailed} {
		p := s.pod(name)
		p.Status.Phase = phase
		if err := shared.admin.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		s.add(s.request(newID(), name)).refusedWith(t, "PodEnded", "pod "+s.Namespace+"/"+name)
	}
}

// Why an address is not given: host, namespace, network, pool.
func TestPoolsThatGiveNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(2, nil)
	s.pod("web-0")
	body := s.request(newID(), "web-0")
	other := "172.31.255.1"
	s.add(with(body, "host", other)).refused(t,
		refusal{200, 2, "HostNotInPool", "host " + other + " does not exist in pools", ""})
	s.add(with(body, "network", "nowhere")).refusedWith(t, "NetworkNotFound", "host "+s.Host, "network nowhere")

	elsewhere := newSite(t)
	elsewhere.pool(1, func(p *v1.BCSNetPool) { p.Spec.Namespaces = []string{elsewhere.Namespace} })
	s.add(with(body, "host", elsewhere.Host)).
		refusedWith(t, "NamespaceNotServed", "host "+elsewhere.Host, elsewhere.Namespace, "namespace "+s.Namespace)
}

func TestCordonedPool(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pool := s.pool(3, nil)
	held, address := s.given("web-0")
	change := func(cordoned bool) {
		patch := fmt.Appendf(nil, `{"spec":{"cordoned":%t}}`, cordoned)
		if err := shared.admin.Patch(t.Context(), pool, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Fatal(err)
		}
	}
	change(true)
	s.pod("web-1")
	body := s.request(newID(), "web-1")
	var a answer
	controlplane.Eventually(t, func() error {
		// What a pool gives until its cordon is known is given back.
		if a = s.add(body); a.Code == 0 {
			s.del(body).done(t)
			body = s.request(newID(), "web-1")
			return fmt.Errorf("%s", a.Raw)
		}
		return nil
	})
	a.refusedWith(t, "PoolCordoned", fmt.Sprintf("no available IP for pod %s/web-1: ", s.Namespace), "pool "+pool.Name+
		" is cordoned")
	free := s.unused(3, address)
	s.add(with(body, "ipAddr", free)).refusedWith(t, "PoolCordoned", "address "+free, "pool "+pool.Name, "cordoned")
	if again := s.add(held).done(t)["ipAddr"]; again != address {
		t.Errorf("the lease answers %v, want %s", again, address)
	}
	s.del(held).done(t)
	change(false)
	controlplane.Eventually(t, func() error {
		if a = s.add(body); a.Code != 0 {
			return fmt.Errorf("%s", a.Raw)
		}
		return nil
	})
}

func TestExhaustedPool(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pool := s.pool(2, nil)
	first, _ := s.given("web-0")
	s.given("web-1")
	s.pod("web-2")
	body := s.request(newID(), "web-2")
	counts := []string{"pool " + pool.Name, "0 of 2", "2 active", "0 reserved"}
	s.add(body).refusedWith(t, "PoolExhausted",
		append(counts, fmt.Sprintf("no available IP for pod %s/web-2: ", s.Namespace))...)
	s.add(object{"host": s.Host, "owner": s.owner("vm")}).refusedWith(t, "PoolExhausted",
		append(counts, "no available IP for owner "+s.owner("vm")+": ")...)
	s.del(first).done(t)
	s.add(body).done(t)
}

// An address that is asked for: which ones cannot be had, and why.
func TestAddressesAskedFor(t *testing.T) {
	t.Parallel()
	s, foreign, bound := newSite(t), newSite(t), newSite(t)
	pool := s.pool(4, nil)
	foreign.pool(1, nil)
	bound.pool(1, func(p *v1.BCSNetPool) {
		p.Spec.Namespaces, p.Spec.Hosts = []string{bound.Namespace}, []string{bound.Host, s.Host}
	})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	s.create(node)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: s.ip(23)}}
	if err := shared.admin.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.admin.Delete(context.Background(), node) })
	s.pod("web-0")
	holder, used, reserved := s.request(newID(), "web-0"), s.ip(20), s.ip(21)
	s.add(with(holder, "ipAddr", used)).done(t)
	o := stored(t, reserved)
	o.Status.Status = v1.IPReserved
	if err := shared.admin.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s.pod("web-1")
	body := s.request(newID(), "web-1")
	for name, c := range map[string]struct {
		addr, reason string
		parts        []string
	}{
		"in no pool":       {"203.0.113.9", "AddressNotInPool", nil},
		"only in a subnet": {s.ip(99), "AddressNotInPool", []string{"pool " + pool.Name, s.ip(0) + "/24"}},
		"the gateway":      {s.ip(1), "AddressNotInPool", []string{"pool " + pool.Name, s.ip(0) + "/24"}},
		"of another host":  {foreign.ip(20), "HostNotInPool", []string{"pool " + foreign.Namespace, "host " + s.Host}},
		"of a namespace":   {bound.ip(20), "NamespaceNotServed", []string{"pool " + bound.Namespace, "namespace " + s.Namespace}},
		"used":             {used, "AddressInUse", []string{"held by " + s.Namespace + "/web-0", "host " + s.Host}},
		"reserved":         {reserved, "AddressInUse", []string{"reserved"}},
		"of a node":        {s.ip(23), "AddressInUse", []string{"node " + s.Namespace}},
	} {
		t.Run(name, func(t *testing.T) {
			var a answer
			controlplane.Eventually(t, func() error { // the watch has to bring the node and the reservation
				if a = s.add(with(body, "ipAddr", c.addr)); string(a.Reason) != c.reason {
					s.del(body)
					return fmt.Errorf("%s", a.Raw)
				}
				return nil
			})
			a.refusedWith(t, c.reason, append(c.parts, "address "+c.addr)...)
		})
	}
	if left := active(t, shared.admin, body["containerID"].(string)); len(left) != 0 {
		t.Errorf("refusals left %v", left)
	}

	// What is held already is what may be asked for.
	s.add(with(holder, "ipAddr", used)).done(t)
	for _, change := range [][]any{
		{"ipAddr", s.ip(22)}, {"ipAddr", s.ip6(22)}, {"ipAddr", used + "," + s.ip6(22)}, {"podName", "web-1"}, {"network", "blue"},
	} {
		s.add(with(holder, change...)).refusedWith(t, "ContainerHoldsOther", "address "+used,
			strings.TrimPrefix(change[1].(string), used+","))
	}
}

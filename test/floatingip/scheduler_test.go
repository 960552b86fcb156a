package floatingip_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// Rack A has two nodes and two addresses, rack B one node and five addresses: the better one, where a pod has the
// choice.
const (
	schedA = `{"nodeSubnets":["10.5.0.0/24"],"ips":["10.6.0.10~10.6.0.11"],"subnet":"10.6.0.0/24","gateway":"10.6.0.1"}`
	schedB = `{"nodeSubnets":["10.5.1.0/24"],"ips":["10.6.1.20~10.6.1.24"],"subnet":"10.6.1.0/24","gateway":"10.6.1.1"}`
)

// TestScheduler: the real scheduler places pods where there are addresses for them, and nowhere else. The test is the
// kubelets that ask for the addresses.
func TestScheduler(t *testing.T) {
	prepare(t)
	newNode(t, "a1", "10.5.0.11")
	newNode(t, "a2", "10.5.0.12")
	newNode(t, "b1", "10.5.1.11")
	for _, name := range []string{"a1", "a2", "b1"} {
		kubectl(t, "wait", "--for=condition=Ready", "node/"+name, "--timeout=60s")
	}

	// Without a pool no node has the resource, and the pod waits.
	early := asking(t, "early")
	waits(t, early, "Insufficient "+string(eniIP))
	document(t, list(schedA, schedB))
	offers(t, map[string]int64{"a1": 2, "a2": 2, "b1": 5})
	gone(t, early, hostOf(placed(t, early))) // on the node that had the resource first
	roomy := asking(t, "roomy")
	if node := placed(t, roomy); node != "b1" {
		t.Errorf("rack B has the most addresses left, the pod is on %s", node)
	}
	ask(t, http.MethodPost, "10.5.1.11", roomy)
	whole := asking(t, "whole", ourIP)
	if node := placed(t, whole); node != "b1" {
		t.Errorf("rack B has the most addresses left, the pod that whole nodes were sent for is on %s", node)
	}
	gone(t, whole, "10.5.1.11")
	offers(t, map[string]int64{"a1": 2, "a2": 2, "b1": 5}) // its own pods count
	gone(t, roomy, "10.5.1.11")

	// A pod that has its address in rack A goes nowhere else, although rack B has more.
	kubectl(t, "cordon", "b1")
	stateful(t, "db")
	home := placed(t, "db-0")
	kept := ask(t, http.MethodPost, hostOf(home), "db-0").Address.IPAddr
	if !strings.HasPrefix(kept, "10.6.0.") {
		t.Fatalf("db-0 on %s has %s", home, kept)
	}
	kubectl(t, "uncordon", "b1")
	kubectl(t, "cordon", "a1")
	kubectl(t, "cordon", "a2")
	ask(t, http.MethodDelete, hostOf(home), "db-0")
	kubectl(t, "delete", "pod/db-0", "--grace-period=0", "--force")
	waits(t, "db-0", "FloatingIPPlugin:NoFIPLeft")
	kubectl(t, "uncordon", "a1")
	kubectl(t, "uncordon", "a2")
	home = placed(t, "db-0")
	if got := ask(t, http.MethodPost, hostOf(home), "db-0"); !strings.HasPrefix(home, "a") ||
		got.Address.IPAddr != kept {
		t.Fatalf("db-0 came to %s with %+v, it had %s", home, got, kept)
	}

	// One address is left for two nodes of rack A: one of two pods gets it, before anybody has asked for an address.
	// They are asked about in different ways.
	kubectl(t, "cordon", "b1")
	pods := []string{asking(t, "burst-0"), asking(t, "burst-1", ourIP)}
	var first, second string
	controlplane.Eventually(t, func() error {
		for i, name := range pods {
			if p, err := get(t, name); err == nil && p.Spec.NodeName != "" {
				first, second = name, pods[1-i]
				return nil
			}
		}
		return errors.New("none of them is placed")
	})
	waits(t, second, "FloatingIPPlugin:NoFIPLeft")
	on := placed(t, first)
	if got := ask(t, http.MethodPost, hostOf(on), first); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if p, err := get(t, second); err != nil || p.Spec.NodeName != "" {
		t.Errorf("no address is left, and %s is on %s, %v", second, p.Spec.NodeName, err)
	}
	gone(t, first, hostOf(on))
	on = placed(t, second) // it goes on
	if got := ask(t, http.MethodPost, hostOf(on), second); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	gone(t, second, hostOf(on))

	// Of a pool that bounds what one host has, a node offers no more, whatever is free.
	kubectl(t, "cordon", "a1")
	kubectl(t, "cordon", "a2")
	kubectl(t, "uncordon", "b1")
	atMost := func(n int32) {
		var pools v1.BCSNetPoolList
		if err := admin.List(t.Context(), &pools); err != nil {
			t.Fatal(err)
		}
		for i := range pools.Items {
			if p := &pools.Items[i]; p.Spec.Net == "10.6.1.0" {
				before := p.DeepCopy()
				p.Spec.MaxPerHost = n
				if err := admin.Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	atMost(1)
	offers(t, map[string]int64{"b1": 1, home: 2, map[string]string{"a1": "a2", "a2": "a1"}[home]: 1})
	one := asking(t, "one-per-host")
	if got := ask(t, http.MethodPost, hostOf(placed(t, one)), one); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	two := asking(t, "two-per-host")
	waits(t, two, "Insufficient "+string(eniIP))
	if got := ask(t, http.MethodPost, "10.5.1.11", two); got.Reason != "HostFull" {
		t.Fatalf("%+v", got)
	}
	atMost(2)
	if got := ask(t, http.MethodPost, hostOf(placed(t, two)), two); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	gone(t, one, "10.5.1.11")
	gone(t, two, "10.5.1.11")
	kubectl(t, "uncordon", "a1")
	kubectl(t, "uncordon", "a2")

	// Pools that are for other hosts are nothing to offer, when the last pod has gone.
	kubectl(t, "delete", "statefulset/db", "--timeout=60s")
	ask(t, http.MethodDelete, hostOf(home), "db-0")
	controlplane.Eventually(t, func() error { return client.IgnoreNotFound(present(t, "db-0")) })
	elsewhere := strings.NewReplacer("10.5.0.0/24", "10.5.8.0/24", "10.5.1.0/24", "10.5.9.0/24")
	document(t, elsewhere.Replace(list(schedA, schedB)))
	offers(t, nil)
	document(t, "[]")
}

// asking makes a pod that asks for an address by a resource, eniIP where none is named.
func asking(t *testing.T, name string, by ...corev1.ResourceName) string {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: askingSpec(append(by, eniIP)[0]),
	}
	controlplane.Eventually(t, func() error { return admin.Create(t.Context(), p) })
	t.Cleanup(func() { _ = admin.Delete(context.Background(), p, client.GracePeriodSeconds(0)) })
	return name
}

func askingSpec(by corev1.ResourceName) corev1.PodSpec {
	one := corev1.ResourceList{by: resource.MustParse("1")}
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "c", Resources: corev1.ResourceRequirements{Requests: one, Limits: one},
	}}}
}

// stateful makes a StatefulSet of one pod that keeps its address.
func stateful(t *testing.T, name string) {
	t.Helper()
	labels := map[string]string{"app": name}
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: labels, Annotations: map[string]string{"k8s.v1.cni.galaxy.io/release-policy": "immutable"},
				},
				Spec: askingSpec(eniIP),
			},
		},
	}
	if err := admin.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), s) })
}

func get(t *testing.T, name string) (p corev1.Pod, err error) {
	t.Helper()
	return p, admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &p)
}

// present is an error, NotFound where a pod has gone.
func present(t *testing.T, name string) error {
	t.Helper()
	if _, err := get(t, name); err != nil {
		return err
	}
	return fmt.Errorf("pod %s is there", name)
}

// placed waits until a pod is on a node.
func placed(t *testing.T, name string) (node string) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		p, err := get(t, name)
		if err == nil && (p.Spec.NodeName == "" || p.DeletionTimestamp != nil) {
			err = fmt.Errorf("pod %s is on no node: %s", name, why(&p))
		}
		node = p.Spec.NodeName
		return err
	})
	return node
}

// waits waits until the scheduler has said why it does not place a pod.
func waits(t *testing.T, name, because string) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		p, err := get(t, name)
		switch {
		case err != nil:
			return err
		case p.Spec.NodeName != "":
			t.Fatalf("pod %s is on %s", name, p.Spec.NodeName)
		case !strings.Contains(why(&p), because):
			return fmt.Errorf("pod %s waits for another reason than %q: %s", name, because, why(&p))
		}
		return nil
	})
}

// why is what the scheduler says of a pod.
func why(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Message
		}
	}
	return ""
}

// gone ends a pod, as its kubelet does.
func gone(t *testing.T, name, host string) {
	t.Helper()
	ask(t, http.MethodDelete, host, name)
	kubectl(t, "delete", "pod/"+name, "--grace-period=0", "--force")
}

// offers waits until the nodes say for how many pods they have addresses; those that are not named say nothing.
func offers(t *testing.T, want map[string]int64) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		var nodes corev1.NodeList
		if err := admin.List(t.Context(), &nodes); err != nil {
			return err
		}
		var errs []error
		for i := range nodes.Items {
			n := &nodes.Items[i]
			for _, name := range []corev1.ResourceName{eniIP, ourIP} {
				c, there := n.Status.Capacity[name]
				a := n.Status.Allocatable[name]
				if v, ok := want[n.Name]; ok != there || c.Value() != v || a.Value() != v {
					errs = append(errs, fmt.Errorf("node %s says %s: %s, %s, want %d, %t", n.Name, name, c.String(),
						a.String(), v, ok))
				}
			}
		}
		return errors.Join(errs...)
	})
}

// hostOf is the address of a node.
func hostOf(node string) string {
	return map[string]string{"a1": "10.5.0.11", "a2": "10.5.0.12", "b1": "10.5.1.11"}[node]
}

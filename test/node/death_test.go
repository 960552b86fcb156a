//go:build linux

package node

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// TestANodeDiesAndComesBack kills a node with pods on it. When it is back each of its sandboxes of before gets a DEL
// without a network namespace, and its pods have addresses that nobody else has.
func TestANodeDiesAndComesBack(t *testing.T) {
	x := newTenant(t)
	n := x.Node("n1")
	_, kept := x.sticky(t, "kept", n.Name, bridged)
	pods := []*corev1.Pod{x.create(t, "one", n.Name, bridged), x.create(t, "two", n.Name, macvlan)}
	other := x.create(t, "other", "n2", bridged)
	keeps := x.ready(t, kept)
	for _, pod := range append(pods, other) {
		x.ready(t, pod)
	}
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(pods, []*corev1.Pod{kept, other})
	controlplane.EventuallyWithin(t, 2*time.Minute, func() error {
		for _, pod := range all {
			if _, err := x.asReady(t, pod); err != nil {
				return err
			}
			if pod.Status.ContainerStatuses[0].RestartCount == 0 && pod != other {
				return fmt.Errorf("the pod %s has not come back yet", pod.Name)
			}
		}
		return nil
	})
	for _, pod := range all {
		x.answersFabric(t, pod.Name, x.ready(t, pod)) // at the addresses that it has now
	}
	if after := x.ready(t, kept); after != keeps {
		t.Errorf("the pod that keeps its addresses has %s, want %s", after, keeps)
	}
	x.wantLeases(t, all...)
}

// TestAStickyPodLeavesADeadNode kills the node of a pod that keeps its addresses. Once somebody has said that the node
// is down, the pod comes up on the other one with the addresses that it had. The node comes back, and takes nothing
// from it.
func TestAStickyPodLeavesADeadNode(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	x := newTenant(t)
	n := x.Node("n3")
	set, pod := x.sticky(t, "kept", n.Name, bridged)
	before := x.ready(t, pod)
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	x.taint(t, n.Name, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "down", Effect: corev1.TaintEffectNoExecute})
	after := x.move(t, set, pod, "n2")
	if after != before {
		t.Errorf("on n2 it has %s, want %s", after, before)
	}
	x.taint(t, n.Name)
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.ready(t, x.create(t, "new", n.Name, bridged)) // its DELs of before have been sent
	x.answersFabric(t, pod.Name, after)
}

// taint gives a node these taints and no others.
func (x *tenant) taint(t *testing.T, name string, taints ...corev1.Taint) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		node := &corev1.Node{}
		if err := x.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		before := node.DeepCopy()
		node.Spec.Taints = taints
		return x.Patch(t.Context(), node, client.MergeFrom(before))
	})
}

// TestContainerdDiesInAdd kills containerd while a plugin waits for its address, which goes on without it, as it is
// nobody's child then.
func TestContainerdDiesInAdd(t *testing.T) {
	x := newTenant(t)
	for name, c := range map[string]struct {
		at   moment
		node string
	}{"before": {beforeController, "n1"}, "after": {afterController, "n2"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := x.Node(c.node)
			held, release := x.door.hold(t, http.MethodPost, name, c.at)
			pod := x.create(t, name, n.Name, bridged)
			comes(t, "an ADD", held)
			if err := n.KillContainerd(t.Context()); err != nil {
				t.Fatal(err)
			}
			release()
			if err := n.StartContainerd(t.Context()); err != nil {
				t.Fatal(err)
			}
			x.answersFabric(t, pod.Name, x.ready(t, pod))
			x.wantLeases(t, pod)
		})
	}
}

// TestAPluginDies kills plugins while a pod comes and while it goes, at each of their steps. The runtime tries again.
func TestAPluginDies(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	for name, c := range map[string]struct {
		program string
		method  string
		at      moment
	}{
		"ipam-before-the-address":   {"bcsnet-ipam", http.MethodPost, beforeController},
		"ipam-with-the-address":     {"bcsnet-ipam", http.MethodPost, afterController},
		"bridge-before-the-address": {"bridge", http.MethodPost, beforeController},
		"bridge-with-the-address":   {"bridge", http.MethodPost, afterController},
		"ipam-before-the-release":   {"bcsnet-ipam", http.MethodDelete, beforeController},
		"ipam-after-the-release":    {"bcsnet-ipam", http.MethodDelete, afterController},
		"bridge-in-the-release":     {"bridge", http.MethodDelete, beforeController},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := x.Node("n1")
			if c.method == http.MethodPost {
				held, release := x.door.hold(t, c.method, name, c.at)
				pod := x.create(t, name, n.Name, bridged)
				comes(t, "an ADD", held)
				kill(t, n, c.program, name)
				release()
				x.answersFabric(t, name, x.ready(t, pod))
				x.wantLeases(t, pod)
				return
			}
			pod := x.create(t, name, n.Name, bridged)
			x.ready(t, pod)
			held, release := x.door.hold(t, c.method, name, c.at)
			if err := x.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			comes(t, "a DEL", held)
			kill(t, n, c.program, name)
			release()
		})
	}
}

// kill ends the instances of a program on a node that are about a pod, of which there must be some.
func kill(t *testing.T, n *bed.Node, program, pod string) {
	t.Helper()
	pids := n.Plugins(program, pod)
	if len(pids) == 0 {
		t.Fatalf("no %s runs on %s for %s", program, n.Name, pod)
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

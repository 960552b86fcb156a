//go:build linux

package node

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// TestANodeDiesAndComesBack kills a node with pods on it. When it is back each of its sandboxes of before gets a DEL without a
// network namespace, and its pods have addresses that nobody else has.
func TestANodeDiesAndComesBack(t *testing.T) {
	x := newTenant(t)
	n := x.Node("n1")
	set, kept := x.sticky(t, n.Name, bridged)
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
	all := append(pods, kept, other)
	controlplane.EventuallyWithin(t, 2*time.Minute, func() error {
		for _, pod := range all {
			a, err := x.asReady(t, pod)
			if err != nil {
				return err
			}
			if pod.Status.ContainerStatuses[0].RestartCount == 0 && pod != other {
				return fmt.Errorf("the pod %s has not come back yet", pod.Name)
			}
			if _, err := x.fromFabric(t, a); err != nil {
				return err
			}
		}
		return nil
	})
	for _, pod := range all {
		x.ready(t, pod) // the addresses that it has now
	}
	if after := x.ready(t, kept); after != keeps {
		t.Errorf("the pod that keeps its addresses has %s, want %s", after, keeps)
	}
	x.wantLeases(t, all...)
	if err := x.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
}

// TestAStickyPodLeavesADeadNode kills the node of a pod that keeps its addresses. Once somebody has said that the node is down,
// the pod comes up on the other one with the addresses that it had. The node comes back, and takes nothing from it.
func TestAStickyPodLeavesADeadNode(t *testing.T) {
	x := newTenant(t)
	n := x.Node("n1")
	set, pod := x.sticky(t, n.Name, bridged)
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
	if answer, err := x.fromFabric(t, after); err != nil {
		t.Errorf("after %s came back: %q, %v", n.Name, answer, err)
	}
	if err := x.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
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

// TestContainerdDiesInAdd kills containerd while a plugin waits for its address, which goes on without it, as it is nobody's
// child then.
func TestContainerdDiesInAdd(t *testing.T) {
	for name, at := range map[string]moment{"before the address": beforeController, "after the address": afterController} {
		t.Run(name, func(t *testing.T) {
			x := newTenant(t)
			n := x.Node("n2")
			held, release := x.door.hold(t, http.MethodPost, at)
			pod := x.create(t, "pod", n.Name, bridged)
			comes(t, "an ADD", held)
			if err := n.KillContainerd(t.Context()); err != nil {
				t.Fatal(err)
			}
			release()
			if err := n.StartContainerd(t.Context()); err != nil {
				t.Fatal(err)
			}
			a := x.ready(t, pod)
			if answer, err := x.fromFabric(t, a); err != nil {
				t.Errorf("%s answers %q, %v", a, answer, err)
			}
			x.wantLeases(t, pod)
		})
	}
}

// TestAPluginDies kills plugins while a pod comes and while it goes, at each of their steps. The runtime tries again.
func TestAPluginDies(t *testing.T) {
	for name, c := range map[string]struct {
		method  string
		at      moment
		program string
	}{
		"IPAM, before the address":        {http.MethodPost, beforeController, "bcsnet-ipam"},
		"IPAM, after the address":         {http.MethodPost, afterController, "bcsnet-ipam"},
		"main plugin, before the address": {http.MethodPost, beforeController, "bridge"},
		"main plugin, after the address":  {http.MethodPost, afterController, "bridge"},
		"IPAM, before the release":        {http.MethodDelete, beforeController, "bcsnet-ipam"},
		"IPAM, after the release":         {http.MethodDelete, afterController, "bcsnet-ipam"},
		"main plugin, in the release":     {http.MethodDelete, beforeController, "bridge"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTenant(t)
			n := x.Node("n1")
			comesUp := func(pod *corev1.Pod) {
				a := x.ready(t, pod)
				if answer, err := x.fromFabric(t, a); err != nil {
					t.Errorf("%s answers %q, %v", a, answer, err)
				}
				x.wantLeases(t, pod)
			}
			if c.method == http.MethodPost {
				held, release := x.door.hold(t, c.method, c.at)
				pod := x.create(t, "pod", n.Name, bridged)
				comes(t, "an ADD", held)
				kill(t, n, c.program)
				release()
				comesUp(pod)
				return
			}
			pod := x.create(t, "pod", n.Name, bridged)
			comesUp(pod)
			held, release := x.door.hold(t, c.method, c.at)
			if err := x.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			comes(t, "a DEL", held)
			kill(t, n, c.program)
			release()
		})
	}
}

// kill ends all instances of a program on a node, of which there must be some.
func kill(t *testing.T, n *bed.Node, program string) {
	t.Helper()
	pids := n.Processes(program)
	if len(pids) == 0 {
		t.Fatalf("no %s runs on %s", program, n.Name)
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheAnnouncementDies kills the chained plugin, when the address is configured and not yet announced.
func TestTheAnnouncementDies(t *testing.T) {
	x := newTenant(t)
	n := x.Node("n1")
	pod := x.create(t, "pod", n.Name, bridged)
	controlplane.Eventually(t, func() error {
		pids := n.Processes("bcsnet-announce")
		if len(pids) == 0 {
			return fmt.Errorf("no announcement on %s", n.Name)
		}
		return unix.Kill(pids[0], unix.SIGKILL)
	})
	a := x.ready(t, pod)
	if answer, err := x.fromFabric(t, a); err != nil {
		t.Errorf("%s answers %q, %v", a, answer, err)
	}
	x.wantLeases(t, pod)
}

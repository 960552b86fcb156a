//go:build linux

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// outage is the time for which allocator and API server are away.
const outage = 5 * time.Minute

// long skips a test of the long form: make test-node.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("NODE_LONG") == "" {
		t.Skip("skipped: it takes minutes; hint: make test-node")
	}
}

// TestTheAllocatorIsAway has pods come and go while no replica answers. Those that go are gone in time, those that come
// wait, no node becomes NotReady and no pod is evicted. When the allocator is back, it gets the DELs that it has
// missed.
func TestTheAllocatorIsAway(t *testing.T) {
	long(t)
	x := newTenant(t)
	stays := []*corev1.Pod{x.create(t, "stays-1", "n1", bridged), x.create(t, "stays-2", "n2", bridged)}
	var goes []*corev1.Pod
	for i := range 10 {
		goes = append(goes, x.create(t, fmt.Sprintf("goes-%d", i), fmt.Sprintf("n%d", 1+i%2), bridged))
	}
	for _, pod := range append(slices.Clone(stays), goes...) {
		x.ready(t, pod)
	}
	open := x.door.shut(t)
	var comes []*corev1.Pod
	x.every(t, outage/10, 10, func(i int) {
		comes = append(comes, x.create(t, fmt.Sprintf("comes-%d", i), fmt.Sprintf("n%d", 1+i%2), bridged))
		x.end(t, goes[i])
		x.wantUndisturbed(t, stays)
	})
	open()
	for _, pod := range comes {
		x.answersFabric(t, pod.Name, x.ready(t, pod))
	}
	x.wantLeases(t, append(stays, comes...)...)
	controlplane.EventuallyWithin(t, 90*time.Second, func() error { // none was heard to go
		for _, pod := range goes {
			if left := x.leasesOf(t, pod.Name); len(left) > 0 {
				return fmt.Errorf("%s is held for %s, which has gone", left[0].Name, pod.Name)
			}
		}
		return nil
	})
}

// every calls a function n times, at an interval.
func (x *tenant) every(t *testing.T, interval time.Duration, n int, do func(int)) {
	t.Helper()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for i := range n {
		do(i)
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// end deletes a pod and waits until its kubelet has ended it.
func (x *tenant) end(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if err := x.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error {
		err := x.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("the pod %s is still there", pod.Name))
	})
}

// wantUndisturbed checks that nodes and pods are as if nothing was.
func (x *tenant) wantUndisturbed(t *testing.T, pods []*corev1.Pod) {
	t.Helper()
	for _, n := range x.Nodes() {
		if err := n.Ready(t.Context(), x); err != nil {
			t.Error(err)
		}
	}
	for _, pod := range pods {
		uid := pod.UID
		a, err := x.asReady(t, pod)
		if err != nil || pod.UID != uid {
			t.Errorf("the pod %s: %v", pod.Name, err)
			continue
		}
		x.answersFabric(t, pod.Name, a)
	}
}

// TestTheAPIServerIsAway kills sandboxes of pods while there is no API server. Kubelets make new
// ones when the API server, and by it the allocator, are back.
func TestTheAPIServerIsAway(t *testing.T) {
	long(t)
	x := newTenant(t)
	var pods []*corev1.Pod
	for i := range 6 {
		pods = append(pods, x.create(t, fmt.Sprintf("pod-%d", i), fmt.Sprintf("n%d", 1+i%2), bridged))
	}
	all := map[string]addresses{}
	for _, pod := range pods {
		all[pod.Name] = x.ready(t, pod)
	}
	if err := x.Cluster.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	x.every(t, outage/6, 6, func(i int) {
		if i < 2 { // the rest of the pods go on, whatever happens to these
			for _, pid := range x.Node(pods[i].Spec.NodeName).Sandboxes()[:1] {
				if err := unix.Kill(pid, unix.SIGKILL); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if err := x.Cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		controlplane.EventuallyWithin(t, 3*time.Minute, func() error {
			a, err := x.asReady(t, pod)
			if err == nil {
				_, err = x.Bed.Get(t.Context(), a.v4, "/")
			}
			return err
		})
	}
	x.wantLeases(t, pods...)
}

// Test100Pods starts 100 pods at once, and ends them at once.
func Test100Pods(t *testing.T) {
	long(t)
	x := newTenant(t)
	var pods []*corev1.Pod
	for i := range 100 {
		pods = append(pods, x.create(t, fmt.Sprintf("pod-%d", i), fmt.Sprintf("n%d", 1+i%2), bridged))
	}
	for _, pod := range pods {
		controlplane.EventuallyWithin(t, 10*time.Minute, func() error {
			_, err := x.asReady(t, pod)
			return err
		})
	}
	x.wantLeases(t, pods...)
}

// TestGarbageIsCollectedDuringAnAdd has libcni collect the garbage of a network, as runtimes do that this one is not,
// while an ADD is under way, of which the collection knows nothing. What nobody has goes, what pods have stays.
func TestGarbageIsCollectedDuringAnAdd(t *testing.T) {
	long(t)
	x := newTenant(t)
	n := x.Node("n1")
	lives := x.create(t, "lives", n.Name, bridged)
	a := x.ready(t, lives)
	gone := bed.Pod(x.namespace, "by-hand", "")
	gone.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "none"}
	if err := x.Create(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	x.run(t, bed.Call{Args: []string{"ip", "netns", "add", "by-hand"}})
	t.Cleanup(func() { x.run(t, bed.Call{Args: []string{"ip", "netns", "del", "by-hand"}}) })
	x.call(t, "ADD", "/run/netns/by-hand", `{"cniVersion": "1.1.0", "name": "underlay", "type": "bridge", "ipam": {"type": "bcsnet-ipam"}}`)

	// A collection leaves what is younger than five minutes alone.
	controlplane.EventuallyWithin(t, 8*time.Minute, func() error {
		x.collect(t, lives)
		if left := x.leasesOf(t, gone.Name); len(left) > 0 {
			return fmt.Errorf("%s is held still, and nobody has it", left[0].Name)
		}
		return nil
	})
	held, release := x.door.hold(t, http.MethodPost, "comes", afterController)
	pod := x.create(t, "comes", n.Name, bridged)
	comes(t, "an ADD", held)
	x.collect(t, lives)
	if kept := x.leasesOf(t, pod.Name); len(kept) != 2 {
		t.Errorf("the pod of the ADD holds %d addresses, want 2", len(kept))
	}
	release()
	x.answersFabric(t, pod.Name, x.ready(t, pod))
	x.answersFabric(t, lives.Name, a)
	x.wantLeases(t, lives, pod)
}

// collect has libcni collect the garbage of n1 in the default network: all but what some pods have.
func (x *tenant) collect(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	valid := []types.GCAttachment{}
	for _, pod := range pods {
		for _, l := range x.leasesOf(t, pod.Name) {
			valid = append(valid, types.GCAttachment{ContainerID: l.Status.ContainerID, IfName: l.Status.IfName})
		}
	}
	list, err := json.Marshal(valid)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x.run(t, bed.Call{Args: []string{self}, Env: []string{playGC + "=net"}, Input: list})
}

// leasesOf returns the active leases of a pod.
func (x *tenant) leasesOf(t *testing.T, pod string) (found []v1.BCSNetIP) {
	t.Helper()
	leases := &v1.BCSNetIPList{}
	if err := x.List(t.Context(), leases); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(leases.Items, func(l v1.BCSNetIP) bool {
		return l.Status.Status != v1.IPActive || l.Status.PodNamespace != x.namespace || l.Status.PodName != pod
	})
}

// TestTwoInterfaces has a meta plugin give a pod an interface of each of two networks, as Multus does: the same
// container, and another name of the interface.
func TestTwoInterfaces(t *testing.T) {
	long(t)
	x := newTenant(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n := x.Node("n1")
	if err := n.InstallPlugin(playMeta, self); err != nil {
		t.Fatal(err)
	}
	pod := x.create(t, "two", n.Name, meta)
	x.answersFabric(t, pod.Name, x.ready(t, pod))
	names := map[string]int{}
	for _, l := range x.leasesOf(t, pod.Name) {
		names[l.Status.IfName]++
		if l.Spec.Address == "" { // of IPv4, which the network can be asked for
			if _, err := x.Bed.Get(t.Context(), mustAddr(t, l.Name), "/"); err != nil {
				t.Errorf("%s, of %s: %v", l.Name, l.Status.IfName, err)
			}
		}
	}
	if names["eth0"] != 2 || names["net1"] != 2 || len(names) != 2 {
		t.Errorf("leases by interface: %v, want two each of eth0 and net1", names)
	}
}

// TestPointToPoint has a pod behind the main plugin ptp, which asks for addresses before there is a link. The node
// routes to it.
func TestPointToPoint(t *testing.T) {
	long(t)
	x := newTenant(t)
	n := x.Node("n1")
	pod := x.create(t, "routed", n.Name, pointed)
	a := x.ready(t, pod)
	out, err := x.inNode(t, n, bed.Call{Args: []string{filepath.Join(n.Bin, "podtool"), "get", "http://" + a.v4.String() + ":8080/"}})
	if err != nil || len(out) == 0 {
		t.Errorf("the node gets %q, %v", out, err)
	}
	x.wantLeases(t, pod)
}

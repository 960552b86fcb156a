package collect_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/hosts"
)

// annotate gives a node further addresses.
func annotate(t *testing.T, n *corev1.Node, further string) {
	t.Helper()
	before := n.DeepCopy()
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, hosts.Annotation, further)
	if err := admin.Patch(t.Context(), n, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// taint says of a node that its machine is off, or takes that back.
func taint(t *testing.T, n *corev1.Node, off bool) {
	t.Helper()
	before := n.DeepCopy()
	n.Spec.Taints = nil
	if off {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	}
	if err := admin.Patch(t.Context(), n, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// TestFurtherAddresses: what leaks on an address that the annotation of a ready node names comes back as anywhere else,
// and not after --host-grace. If another node claims the address, that one has to be in touch, too.
func TestFurtherAddresses(t *testing.T) {
	cfg := account(t)
	two := node(t, "two-cards", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	annotate(t, two, "10.8.0.11, fd00:8::11,nonsense,10.8.0.12,10.0.0.13")
	other := node(t, "other", "10.0.0.12", corev1.ConditionUnknown, time.Minute)
	annotate(t, other, "10.8.0.12")
	node(t, "owner", "10.0.0.13", corev1.ConditionUnknown, time.Minute)
	// The node's own pods.
	hold(t, "10.1.0.120", "10.8.0.11", "gone-second-card", "u-1", nil)
	hold(t, "10.1.0.121", "fd00:8::11", "gone-second-card-6", "u-2", nil)
	lives := pod(t, "lives-second-card", two.Name, nil)
	hold(t, "10.1.0.122", "10.8.0.11", lives.Name, string(lives.UID), nil)
	// Whose they are cannot be seen.
	hold(t, "10.1.0.123", "10.8.0.12", "gone-claimed-twice", "u-3", nil)
	hold(t, "10.1.0.124", "10.0.0.13", "gone-on-owner", "u-4", nil)
	// On no node's address.
	hold(t, "10.1.0.125", "10.8.0.99", "gone-nowhere", "u-5", nil)
	start(t, cfg, nil)
	wantCollected(t, "10.1.0.120", "leak-pod-gone")
	wantCollected(t, "10.1.0.121", "leak-pod-gone")
	hold(t, "10.1.0.126", "10.8.0.11", "gone-later", "u-6", nil)
	wantCollected(t, "10.1.0.126", "leak-pod-gone") // the others were seen for longer
	for address, name := range map[string]string{
		"10.1.0.122": lives.Name, "10.1.0.123": "gone-claimed-twice", "10.1.0.124": "gone-on-owner", "10.1.0.125": "gone-nowhere",
	} {
		wantHeld(t, address, name)
	}
	// One of two gives the address up.
	annotate(t, other, "")
	wantCollected(t, "10.1.0.123", "leak-pod-gone")
	wantHeld(t, "10.1.0.124", "gone-on-owner")
}

// TestEndedOnDeadNode: what the kubelet said of each container counts although its node is away since; a phase that
// somebody else wrote does not.
func TestEndedOnDeadNode(t *testing.T) {
	cfg := account(t)
	node(t, "shut-down", "10.0.0.12", corev1.ConditionFalse, time.Minute)
	node(t, "in-touch-there", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	ended := func(states ...corev1.ContainerState) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			for _, s := range states {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "c", State: s})
			}
		}
	}
	finished := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143, FinishedAt: metav1.Now()}}
	lost := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for i, tc := range []struct {
		name   string
		change func(*corev1.Pod)
	}{{"over", ended(finished)}, {"by-phase", ended()}, {"not-found", ended(lost)}, {"runs", ended(running)}} {
		p := pod(t, tc.name, "shut-down", tc.change)
		hold(t, fmt.Sprintf("10.1.0.13%d", i), "10.0.0.12", p.Name, string(p.UID), nil)
	}
	start(t, cfg, nil)
	wantCollected(t, "10.1.0.130", "leak-pod-ended")
	hold(t, "10.1.0.135", "10.0.0.11", "later-there", "u-1", nil)
	wantCollected(t, "10.1.0.135", "leak-pod-gone") // the others were seen for longer
	wantHeld(t, "10.1.0.131", "by-phase")
	wantHeld(t, "10.1.0.132", "not-found")
	wantHeld(t, "10.1.0.133", "runs")
}

// TestOutOfService: by the taint an operator says that nothing runs on a node. It counts with the pod's deletion, and
// only while the API server has the node so.
func TestOutOfService(t *testing.T) {
	cfg := account(t)
	off := node(t, "off", "10.0.0.12", corev1.ConditionUnknown, 10*time.Minute)
	taint(t, off, true)
	node(t, "away-only", "10.0.0.13", corev1.ConditionUnknown, 10*time.Minute)
	removed := node(t, "off-and-removed", "10.0.0.14", corev1.ConditionUnknown, 10*time.Minute)
	taint(t, removed, true)
	if err := admin.Delete(t.Context(), removed); err != nil {
		t.Fatal(err)
	}
	hold(t, "10.1.0.140", "10.0.0.12", "gone-off", "u-1", nil)
	stays := pod(t, "stays-off", off.Name, nil)
	hold(t, "10.1.0.141", "10.0.0.12", stays.Name, string(stays.UID), nil)
	deleted := pod(t, "deleted-off", off.Name, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/wait"} })
	t.Cleanup(func() {
		ctx := context.Background()
		_ = admin.Get(ctx, client.ObjectKeyFromObject(deleted), deleted)
		deleted.Finalizers = nil
		_ = admin.Update(ctx, deleted)
	})
	hold(t, "10.1.0.142", "10.0.0.12", deleted.Name, string(deleted.UID), nil)
	hold(t, "10.1.0.143", "10.0.0.12", "static-off", otherStaticUID, nil)
	hold(t, "10.1.0.144", "10.0.0.12", "gone-asked-since", "u-2", func(ip *v1.BCSNetIP) {
		ip.Status.UpdateTime = time.Now().Add(-time.Minute).UTC().Format(time.RFC3339Nano)
	})
	hold(t, "10.1.0.145", "10.0.0.13", "gone-away", "u-3", nil)
	hold(t, "10.1.0.146", "10.0.0.14", "gone-removed", "u-4", nil)
	start(t, cfg, func(o *controller.Options) { o.CollectAfter = 4 * time.Second })
	wantCollected(t, "10.1.0.140", "leak-pod-gone")
	remove(t, deleted)
	wantCollected(t, "10.1.0.142", "leak-pod-gone")
	wantEvent(t, "took 10.1.0.142 back: pod collect/deleted-off is being deleted, and host 10.0.0.12 is out of service")
	remove(t, stays)
	taint(t, off, false) // the machine is back before the address is
	for address, name := range map[string]string{
		"10.1.0.141": stays.Name, "10.1.0.143": "static-off", "10.1.0.144": "gone-asked-since", "10.1.0.145": "gone-away",
		"10.1.0.146": "gone-removed",
	} {
		wantHeld(t, address, name)
	}
	taint(t, off, true)
	wantCollected(t, "10.1.0.141", "leak-pod-gone")
}

//go:build linux

package node

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// sticky makes a StatefulSet with one pod on a node, which keeps its addresses while it is wanted, and returns that
// pod.
func (x *tenant) sticky(t *testing.T, name, node, network string) (*appsv1.StatefulSet, *corev1.Pod) {
	t.Helper()
	labels := map[string]string{"app": name}
	spec := bed.PodSpec("")
	spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	// A node that is not ready is waited for as long as a test takes.
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists})
	}
	if network != bridged {
		spec.RuntimeClassName = &network
	}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), ServiceName: name,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: labels, Annotations: map[string]string{v1.GroupVersion.Group + "/release-policy": "immutable"},
				},
				Spec: spec,
			},
		},
	}
	if err := x.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	return set, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name + "-0"}}
}

// move has the StatefulSet's pod go to another node, and returns its addresses there once it is ready.
func (x *tenant) move(t *testing.T, set *appsv1.StatefulSet, pod *corev1.Pod, node string) (a addresses) {
	t.Helper()
	before := set.DeepCopy()
	set.Spec.Template.Spec.NodeSelector[corev1.LabelHostname] = node
	if err := x.Patch(t.Context(), set, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	controlplane.EventuallyWithin(t, 2*time.Minute, func() (err error) {
		if a, err = x.asReady(t, pod); err == nil && pod.Spec.NodeName != node {
			err = fmt.Errorf("the pod %s is on %s, want %s", pod.Name, pod.Spec.NodeName, node)
		}
		return err
	})
	return a
}

// TestAStickyPodMoves moves a pod that keeps its address to the other node and back. A peer that has just talked to it
// reaches it there with its first question: its entry of the address, which is fresh, has been corrected.
func TestAStickyPodMoves(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	for name, network := range map[string]string{"same-mac": bridged, "other-mac": plain, "macvlan": macvlan} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := x.ready(t, x.create(t, name+"-peer", "n1", plain))
			set, pod := x.sticky(t, name, "n1", network)
			before := x.ready(t, pod)
			for _, node := range []string{"n2", "n1"} {
				x.reaches(t, peer, before, pod.Name)
				after := x.move(t, set, pod, node)
				if after != before {
					t.Errorf("on %s it has %s, want %s", node, after, before)
				}
				x.reaches(t, peer, after, pod.Name)
				// The fabric has talked to it as well, and is no pod.
				x.answersFabric(t, pod.Name, after)
			}
		})
	}
}

// answersFabric has the fabric ask a pod once, over each family.
func (x *tenant) answersFabric(t *testing.T, name string, a addresses) {
	t.Helper()
	for _, addr := range []netip.Addr{a.v4, a.v6} {
		if answer, err := x.Bed.Get(t.Context(), addr, "/"); err != nil || !strings.HasPrefix(answer, name+" at ") {
			t.Errorf("the fabric asks %s: %q, %v; want %s", addr, answer, err, name)
		}
	}
}

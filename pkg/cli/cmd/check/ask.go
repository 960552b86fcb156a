package check

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// sendPlans writes each running pod's plan, the addresses to ask, into an annotation. The kubelet mounts it as a file.
func (r *run) sendPlans(ctx context.Context) error {
	ready := r.running()
	chosen := nodecheck.ChoosePeers(len(ready), r.random)
	for i, t := range ready {
		for _, a := range t.Addrs {
			t.Plan.Own = append(t.Plan.Own, nodecheck.Own{Addr: a.Addr, Gateway: a.Gateway})
		}
		for _, j := range chosen[i] {
			if addrs := ready[j].inFamiliesOf(t); len(addrs) > 0 {
				t.Plan.Peers = append(t.Plan.Peers, nodecheck.Peer{Name: ready[j].Pod, Addrs: addrs})
			}
		}
	}
	return r.each(ready, func(t *target) error {
		text, err := t.Plan.Encode()
		if err != nil {
			return err
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": t.uid, "annotations": map[string]string{ours(annotationPlan): text},
		}})
		if err != nil {
			return err
		}
		if _, err = r.core.Pods(r.in.Name).Patch(ctx, t.Pod, types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("give pod %s its plan: %w", t.Pod, err)
		}
		return nil
	})
}

// inFamiliesOf returns the addresses of the pod whose family the other pod has, too.
func (t *target) inFamiliesOf(other *target) (addrs []netip.Addr) {
	for _, a := range t.Addrs {
		for _, b := range other.Addrs {
			if a.Addr.Is4() == b.Addr.Is4() {
				addrs = append(addrs, a.Addr)
				break
			}
		}
	}
	return addrs
}

// awaitReports waits until each pod has run its plan, and reads the reports. It waits for askTime at most.
func (r *run) awaitReports(ctx context.Context) error {
	waiting := r.running()
	if len(waiting) == 0 {
		return nil
	}
	r.Say.Wait("waiting until they have asked each other, their gateways and the links")
	within, stop := context.WithTimeout(ctx, askTime)
	defer stop()
	err := wait.PollUntilContextCancel(within, pollEvery, true, func(ctx context.Context) (bool, error) {
		pods, err := r.pods(ctx)
		if err != nil {
			return false, err
		}
		var left []*target
		for _, t := range waiting {
			if !t.read(pods[t.uid]) {
				left = append(left, t)
			}
		}
		waiting = left
		return len(waiting) == 0, nil
	})
	if ctx.Err() != nil || err != nil && within.Err() == nil {
		return cmp.Or(ctx.Err(), err)
	}
	for _, t := range waiting {
		t.fail(nodecheck.CheckPod, "see the kubelet's log on the node", "its pod has not asked within %s", askTime)
	}
	return nil
}

// read reads the report of a pod. It returns true if the pod is finished, also by a failure.
func (t *target) read(pod *corev1.Pod) bool {
	if pod == nil {
		t.fail(nodecheck.CheckPod, "check the node again", "the pod was deleted by somebody else before it had asked")
		return true
	}
	for _, c := range pod.Status.ContainerStatuses {
		e := c.State.Terminated
		switch {
		case e == nil:
		case c.Name == containerAsk && e.ExitCode == 0:
			var err error
			if t.Report, err = nodecheck.ReadReport(e.Message, t.Plan); err != nil {
				t.fail(nodecheck.CheckPod, "take the image of this release: --image IMAGE", "%v", err)
			}
			return true
		default:
			t.fail(nodecheck.CheckPod, "check the node again", "the container %s has ended: %s", c.Name,
				cmp.Or(strings.TrimSpace(e.Message), fmt.Sprintf("%s, exit code %d", e.Reason, e.ExitCode)))
			return true
		}
	}
	return false
}

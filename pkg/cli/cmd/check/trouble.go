package check

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// Reasons of events about a pod without an address: the kubelet's, which has the plugin's message, and our
// controller's.
const (
	sandboxFailed = "FailedCreatePodSandBox"
	notAllocated  = "AddressNotAllocated"
)

// trouble summarizes the events about a pod's start.
type trouble struct {
	latest resource.Event
	// network is the event that explains best why the pod has no address; nil if there is none.
	network  *resource.Event
	failures int32 // failures of its network that the kubelet counted
}

// enough is the number of network failures after which the check gives up; a single one may be temporary.
const enough = 2

// final reports whether the check need not wait for more events.
func (x *trouble) final() bool { return x != nil && x.failures >= enough }

// note takes one more event.
func (x *trouble) note(e resource.Event) {
	if x.latest.Event == nil || e.When.After(x.latest.When) {
		x.latest = e
	}
	if e.Reason == sandboxFailed {
		x.failures += e.Count
	}
	if e.Reason != sandboxFailed && e.Reason != notAllocated {
		return
	}
	if n := x.network; n == nil || e.Reason == sandboxFailed && (n.Reason == notAllocated || e.When.After(n.When)) {
		x.network = &e
	}
}

// fail makes a finding from the events.
func (x *trouble) fail(t *target) {
	if x.network == nil {
		note := strings.TrimSpace(x.latest.Note)
		t.fail(nodecheck.CheckPod, fixOf(note), "the pod does not start: %s", note)
		return
	}
	cause, hint := pluginSentence(x.network.Note)
	t.fail(nodecheck.CheckAddress, cmp.Or(hint, "see /run/bcsnet/calls.log on the node; for what the sentence means "+
		"see cni in the documentation"), "the pod gets no address: %s", cause)
}

// pluginSentence returns a CNI plugin's message without the prefixes of kubelet and runtime, and its hint.
func pluginSentence(note string) (cause, hint string) {
	for _, before := range []string{" failed (add): ", "desc = "} {
		if i := strings.LastIndex(note, before); i >= 0 {
			note = note[i+len(before):]
			break
		}
	}
	cause, hint, _ = strings.Cut(strings.TrimSpace(note), "; hint: ")
	return cause, hint
}

// troubles reads the warnings about pods of the namespace, by the UID of the pod.
func (r *run) troubles(ctx context.Context) (map[types.UID]*trouble, error) {
	all, err := resource.ListEvents(ctx, r.App, r.in.Name, "type="+corev1.EventTypeWarning+",regarding.kind=Pod")
	if err != nil {
		return nil, err
	}
	out := map[types.UID]*trouble{}
	for _, e := range all {
		x := out[e.Regarding.UID]
		if x == nil {
			x = &trouble{}
			out[e.Regarding.UID] = x
		}
		x.note(e)
	}
	return out, nil
}

// hopeless returns why a pod will never run; empty if it may run.
func hopeless(pod *corev1.Pod) string {
	switch {
	case pod == nil:
		return "the pod was deleted by somebody else"
	case pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "":
		return strings.TrimSuffix(fmt.Sprintf("the pod has failed: %s: %s", pod.Status.Reason, pod.Status.Message),
			": ")
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && isFinal(w.Reason) {
			return strings.TrimSuffix(fmt.Sprintf("the container %s does not start: %s: %s", c.Name, w.Reason,
				w.Message), ": ")
		}
		if e := c.State.Terminated; e != nil && (c.Name == containerServe || e.ExitCode != 0) {
			return fmt.Sprintf("the container %s has ended: %s", c.Name,
				cmp.Or(strings.TrimSpace(e.Message), fmt.Sprintf("%s, exit code %d", e.Reason, e.ExitCode)))
		}
	}
	return ""
}

// isFinal reports whether a container with this waiting reason will not start within a minute or so.
func isFinal(reason string) bool {
	switch reason {
	case "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable",
		"SignatureValidationFailed", "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return true
	}
	return false
}

// fixOf returns the next step for a pod that does not start.
func fixOf(why string) string {
	for _, word := range []string{"Image", "image"} {
		if strings.Contains(why, word) {
			return "name an image that the node has or can pull: --image IMAGE"
		}
	}
	if strings.Contains(why, program) {
		return "name an image that has " + program + ": --image IMAGE"
	}
	return "fix it, and check the node again"
}

func isServing(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == containerServe && c.State.Running != nil {
			return len(pod.Status.PodIPs) > 0
		}
	}
	return false
}

func podIPs(pod *corev1.Pod) string {
	out := app.Map(pod.Status.PodIPs, func(ip corev1.PodIP) string { return ip.IP })
	return strings.Join(out, " and ")
}

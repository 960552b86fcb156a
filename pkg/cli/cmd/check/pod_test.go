package check

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

// TestPodName: names of nodes that are long, have dots, or are cut at one make names that pods and hosts can have.
func TestPodName(t *testing.T) {
	seen := map[string]string{}
	for _, node := range []string{
		"n1", "n-1", "ip-10-0-0-1.eu-central-1.compute.internal", strings.Repeat("n", 253), strings.Repeat("n", 252) + "m",
		strings.Repeat("a.", 126) + "b", strings.Repeat("a-b.", 50) + "c",
	} {
		name := podName(node, "x7k2p")
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 || len(name) > maxPodName {
			t.Errorf("%q of %d bytes: %v", name, len(name), wrong)
		}
		if other, twice := seen[name]; twice {
			t.Errorf("%q is of %q and %q", name, node, other)
		}
		seen[name] = node
	}
	if got := podName("n1", "x7k2p"); got != "bcsnet-check-n1-x7k2p" {
		t.Errorf("a short name became %q", got)
	}
}

func TestHopeless(t *testing.T) {
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: containerAsk, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}}}}
	}
	ended := func(name string, e corev1.ContainerStateTerminated) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: name, State: corev1.ContainerState{Terminated: &e},
		}}}
	}
	for name, test := range map[string]struct {
		status    corev1.PodStatus
		want, fix string
	}{
		"it begins":         {},
		"it is created":     {status: waiting("ContainerCreating", "")},
		"one failed pull":   {status: waiting("ErrImagePull", "no such host")},
		"no image":          {status: waiting("ImagePullBackOff", "no such host"), want: "the container ask does not start: ImagePullBackOff: no such host", fix: "--image"},
		"a name":            {status: waiting("InvalidImageName", ""), want: "the container ask does not start: InvalidImageName", fix: "--image"},
		"no program":        {status: ended(containerServe, corev1.ContainerStateTerminated{ExitCode: 128, Message: "exec: \"/bcsnet-podcheck\": no such file"}), want: "the container serve has ended: exec: \"/bcsnet-podcheck\": no such file", fix: "has /bcsnet-podcheck"},
		"it crashed":        {status: ended(containerServe, corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}), want: "the container serve has ended: Error, exit code 1"},
		"it has asked":      {status: ended(containerAsk, corev1.ContainerStateTerminated{Message: "{}"})},
		"the kubelet's no":  {status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfpods", Message: "too many"}, want: "the pod has failed: OutOfpods: too many"},
		"a deadline passed": {status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded"}, want: "the pod has failed: DeadlineExceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			got := hopeless(&corev1.Pod{Status: test.status})
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if fix := fixOf(got); !strings.Contains(fix, test.fix) {
				t.Errorf("fix %q, want %q in it", fix, test.fix)
			}
		})
	}
	if hopeless(nil) == "" {
		t.Error("a pod that is gone may still run")
	}
}

// TestTrouble reads events as kubelets and the controller write them.
func TestTrouble(t *testing.T) {
	event := func(reason, note string, count int32) resource.Event {
		return resource.Event{Event: &eventsv1.Event{Reason: reason, Note: note}, Count: count}
	}
	const sandbox = `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "d50e": ` +
		`plugin type="bridge" failed (add): bcsnet-ipam: host 10.0.0.9 does not exist in pools (HostNotInPool); hint: add it with: ` +
		`bcsnetctl pool add-host POOL 10.0.0.9`
	for name, test := range map[string]struct {
		events            []resource.Event
		final             bool
		check, cause, fix string
	}{
		"the plugin's sentence": {
			events: []resource.Event{event(sandboxFailed, sandbox, 2)}, final: true, check: nodecheck.CheckAddress,
			cause: "the pod gets no address: bcsnet-ipam: host 10.0.0.9 does not exist in pools (HostNotInPool)",
			fix:   "add it with: bcsnetctl pool add-host POOL 10.0.0.9",
		},
		"it goes before the controller's": {
			events: []resource.Event{event(sandboxFailed, sandbox, 1), event(notAllocated, "host 10.0.0.9 does not exist", 1)},
			check:  nodecheck.CheckAddress, cause: "the pod gets no address: bcsnet-ipam: host 10.0.0.9 does not exist in pools (HostNotInPool)",
			fix: "add it with: bcsnetctl pool add-host POOL 10.0.0.9",
		},
		"the controller's alone": {
			events: []resource.Event{event(notAllocated, "pool blue is full; hint: bcsnetctl usage blue", 7)}, check: nodecheck.CheckAddress,
			cause: "the pod gets no address: pool blue is full", fix: "bcsnetctl usage blue",
		},
		"no plugin": {
			events: []resource.Event{event(sandboxFailed, "Failed to create pod sandbox: rpc error: code = Unknown desc = no CNI configuration", 1)},
			check:  nodecheck.CheckAddress, cause: "the pod gets no address: no CNI configuration", fix: "see /run/bcsnet/calls.log on the node; for what the sentence means see cni in the documentation",
		},
		"something else": {
			events: []resource.Event{event("FailedMount", "no such volume", 9)}, check: nodecheck.CheckPod,
			cause: "the pod does not start: no such volume", fix: "fix it, and check the node again",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, n := &trouble{}, &target{}
			for _, e := range test.events {
				x.note(e)
			}
			x.fail(n)
			if x.final() != test.final {
				t.Errorf("final: %t", x.final())
			}
			if f := *n.Failure; f.Check != test.check || f.Cause != test.cause || f.Fix != test.fix {
				t.Errorf("%+v, want %q %q %q", f, test.check, test.cause, test.fix)
			}
		})
	}
}

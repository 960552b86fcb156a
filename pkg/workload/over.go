package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ended reports whether a pod is Succeeded or Failed, whoever wrote the phase: kube-controller-manager also writes it
// for a pod whose node is gone, without knowledge of its containers.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// over reports whether the kubelet has reported for an ended pod that each container has ended and none will start
// again. Only kubelets write the states of containers. A container that could not be found has no finish time, and
// proves nothing. If a container may be restarted, it matters who wrote the phase: the kubelet, which thereby gives the
// pod up, or somebody who deletes a pod whose kubelet is unreachable.
func over(p *corev1.Pod) bool {
	if len(p.Spec.Containers) == 0 || len(p.Status.ContainerStatuses) < len(p.Spec.Containers) ||
		len(p.Status.InitContainerStatuses) < len(p.Spec.InitContainers) {
		return false
	}
	final := p.DeletionTimestamp == nil && !slices.ContainsFunc(p.Status.Conditions, byPodGC)
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses,
		p.Status.EphemeralContainerStatuses) {
		t := c.State.Terminated
		if t == nil || t.FinishedAt.IsZero() || !final && restarts(p.Spec.RestartPolicy, t.ExitCode) {
			return false
		}
	}
	return true
}

// byPodGC reports whether a condition says that kube-controller-manager ended a pod because its node is gone.
func byPodGC(c corev1.PodCondition) bool {
	return c.Type == corev1.DisruptionTarget && c.Reason == reasonPodGC
}

// reasonPodGC is the reason with which the garbage collection of pods marks pods of missing nodes.
const reasonPodGC = "DeletionByPodGC"

// restarts reports whether a kubelet that has not given a pod up restarts a container that has ended.
func restarts(policy corev1.RestartPolicy, code int32) bool {
	return policy != corev1.RestartPolicyNever && (policy != corev1.RestartPolicyOnFailure || code != 0)
}

// trimOver keeps the result of over for an ended pod, without the data from which it is computed.
func trimOver(p, t *corev1.Pod) {
	if over(p) {
		t.Spec.Containers = []corev1.Container{{}}
		t.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Unix(1, 0)},
		}}}
		t.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
}

package workload_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/workload"
)

// container returns the status of a container that has ended with a code.
func container(name string, code int32) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, ContainerID: "containerd://" + name, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Unix(1_700_000_000, 0)},
	}}
}

// TestOver: what a kubelet says of each container is proof that a pod has ended for good. The phase is none: others
// write it, too.
func TestOver(t *testing.T) {
	running := corev1.ContainerStatus{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	waiting := corev1.ContainerStatus{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
	lost := container("c", 137) // as a kubelet says that cannot find the container
	lost.State.Terminated.FinishedAt, lost.ContainerID = metav1.Time{}, ""
	restart := func(policy corev1.RestartPolicy) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.RestartPolicy = policy }
	}
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }
	byPodGC := func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC",
		})
	}
	evicted := func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet",
		})
	}
	states := func(all ...corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.ContainerStatuses = all }
	}
	inits := func(all ...corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i"}}
			p.Status.InitContainerStatuses = all
		}
	}
	code := func(code int32) func(*corev1.Pod) { return states(container("c", code)) }
	type changes = []func(*corev1.Pod)
	for name, tc := range map[string]struct {
		changes changes
		want    bool
	}{
		"each has ended":                         {nil, true},
		"evicted":                                {changes{evicted}, true},
		"still running":                          {changes{func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }}, false},
		"a container runs":                       {changes{states(running)}, false},
		"a container waits":                      {changes{states(waiting)}, false},
		"a container was not found":              {changes{states(lost)}, false},
		"nothing is said of containers":          {changes{states()}, false},
		"of one of two nothing is said":          {changes{func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d"}) }}, false},
		"one of two runs":                        {changes{states(container("c", 0), running)}, false},
		"init containers, too":                   {changes{inits(container("i", 0))}, true},
		"an init container runs, as a sidecar":   {changes{inits(running)}, false},
		"nothing is said of init containers":     {changes{inits()}, false},
		"an ephemeral container runs":            {changes{func(p *corev1.Pod) { p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{running} }}, false},
		"its node is gone":                       {changes{byPodGC}, false},
		"its node is gone, and never starts":     {changes{byPodGC, restart(corev1.RestartPolicyNever)}, true},
		"deleted":                                {changes{deleted}, false},
		"deleted, and never starts":              {changes{deleted, restart(corev1.RestartPolicyNever)}, true},
		"deleted, and starts after failures":     {changes{deleted, restart(corev1.RestartPolicyOnFailure), code(0)}, true},
		"deleted after a failure":                {changes{deleted, restart(corev1.RestartPolicyOnFailure), code(1)}, false},
		"its node is gone, a container runs yet": {changes{byPodGC, restart(corev1.RestartPolicyNever), states(running)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"},
				Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}},
				Status:     corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{container("c", 143)}},
			}
			for _, change := range tc.changes {
				change(p)
			}
			read, cached := workload.FromObject(p), workload.FromObject(workload.Trim(p))
			if read.Over != tc.want || cached.Over != tc.want {
				t.Errorf("over: %t, by the cache %t, want %t", read.Over, cached.Over, tc.want)
			}
			if !read.EndedAt.Equal(cached.EndedAt) || read.Over && read.EndedAt.Before(time.Unix(1_700_000_000, 0)) {
				t.Errorf("ended at %s, by the cache %s", read.EndedAt, cached.EndedAt)
			}
		})
	}
}

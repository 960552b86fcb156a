package workload

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// remembered is the time for which ended and deleted pods are remembered.
const remembered = 10 * time.Second

// Endings has the pods that are being deleted and, for some seconds, those that are gone: after a forced deletion, a
// pod's DEL comes after the end of its object.
type Endings struct {
	now   func() time.Time
	mu    sync.Mutex
	by    map[string]map[string]*Pod // of each namespace, by UID
	swept time.Time
	// seen is the version that the watch has reached. reached is closed and replaced when seen increases while a caller
	// waits.
	seen    uint64
	reached chan struct{}
}

// NewEndings returns an empty Endings. It must handle the events of a watch of all pods.
func NewEndings(now func() time.Time) *Endings {
	return &Endings{now: now, by: map[string]map[string]*Pod{}}
}

// OnAdd records an existing pod.
func (e *Endings) OnAdd(o any, _ bool) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	if p.DeletionTimestamp != nil {
		e.put(FromObject(p))
	}
	e.advance(p)
}

// advance records the progress of the watch.
func (e *Endings) advance(p *corev1.Pod) {
	version, _ := strconv.ParseUint(p.ResourceVersion, 10, 64)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = max(e.seen, version)
	if e.reached != nil {
		close(e.reached)
		e.reached = nil
	}
}

// await waits until the watch has reached a version, up to a second.
func (e *Endings) await(ctx context.Context, version uint64) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for ctx.Err() == nil {
		e.mu.Lock()
		if e.seen >= version {
			e.mu.Unlock()
			return
		}
		if e.reached == nil {
			e.reached = make(chan struct{})
		}
		reached := e.reached
		e.mu.Unlock()
		select {
		case <-reached:
		case <-ctx.Done():
		}
	}
}

// OnUpdate records a changed pod.
func (e *Endings) OnUpdate(_, o any) { e.OnAdd(o, false) }

// OnDelete records a deleted pod.
func (e *Endings) OnDelete(o any) {
	if unknown, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	if p, ok := o.(*corev1.Pod); ok {
		pod := FromObject(p)
		pod.Deleting, pod.DeletedAt, pod.EndsBy = true, e.now(), e.now()
		e.put(pod)
		e.advance(p)
	}
}

func (e *Endings) put(p Pod) {
	if Static(p.UID) {
		return // its containers run on without their mirror
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.now(); now.Sub(e.swept) >= remembered {
		e.swept = now
		for namespace, pods := range e.by {
			maps.DeleteFunc(pods, func(_ string, p *Pod) bool { return now.Sub(p.EndsBy) >= remembered })
			if len(pods) == 0 {
				delete(e.by, namespace)
			}
		}
	}
	if e.by[p.Namespace] == nil {
		e.by[p.Namespace] = map[string]*Pod{}
	}
	e.by[p.Namespace][p.UID] = &p
}

// of returns the matching pods of a namespace. Only these are copied: a namespace may have thousands, and every request
// of an app asks.
func (e *Endings) of(namespace string, match func(uid string) bool) (all []Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for uid, p := range e.by[namespace] {
		if match(uid) {
			all = append(all, *p)
		}
	}
	return all
}

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

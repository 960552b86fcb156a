package sticky_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// slowly is the annotation of pods whose containers take this long to end.
const slowly = "sticky.test/ends-after"

// inOrder is the annotation of pods whose DEL always comes before their object goes, and whose first ADD comes a while
// after their object: of two ReplicaSets one may make a pod before the other deletes the one in whose place it comes.
const inOrder = "sticky.test/in-order"

// pod is the kubelet's worker for a pod.
type pod struct {
	*kubelet
	machine *machine
	object  *corev1.Pod
	// ending is closed when somebody wants the pod to end, gone when its object is no more.
	ending, gone chan struct{}
	end, vanish  sync.Once

	sandbox string
	started time.Time
	address string
}

func resources() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: resource.MustParse("1000"),
	}
}

// live is the pod's life: sandboxes until one gets an address, then running, then the end.
func (p *pod) live() {
	if p.object.Annotations[inOrder] != "" {
		p.await(time.Second, p.ending)
	}
	for pause := 500 * time.Millisecond; p.address == "" && p.lives(); pause = min(2*pause, 4*time.Second) {
		p.sandbox, p.started = strings.ReplaceAll(uuid.NewString()+uuid.NewString(), "-", ""), time.Now()
		if p.add() {
			break
		}
		p.del() // of the sandbox that failed
		p.await(pause, p.ending)
	}
	if p.address != "" {
		for !p.report() && p.await(100*time.Millisecond, p.ending) {
		}
	}
	select {
	case <-p.ending:
		p.finish()
	case <-p.machine.lost:
	case <-p.ctx.Done():
	}
}

// lives says whether the pod is to run and its node is there.
func (p *pod) lives() bool {
	select {
	case <-p.ending:
	case <-p.machine.lost:
	case <-p.ctx.Done():
	default:
		return true
	}
	return false
}

// await is true after the time, false when something happened before.
func (p *pod) await(d time.Duration, or <-chan struct{}) bool {
	select {
	case <-time.After(d):
		return true
	case <-or:
	case <-p.machine.lost:
	case <-p.ctx.Done():
	}
	return false
}

// add asks for the address of a sandbox.
func (p *pod) add() bool {
	a, err := p.ask(http.MethodPost)
	switch {
	case err != nil:
		return false
	case a.Code != 0:
		p.refused(refusal{string(a.Reason), a.Message})
		return false
	}
	p.took(a.Address.IPAddr)
	return true
}

// del gives the address up; it may be said twice.
func (p *pod) del() {
	p.gaveUp()
	for range 1 + p.below(5)/4 {
		for p.ctx.Err() == nil && !p.isLost() {
			if a, err := p.ask(http.MethodDelete); err == nil && a.Code == 0 {
				break
			}
			p.await(200*time.Millisecond, nil)
		}
	}
}

func (p *pod) isLost() bool {
	select {
	case <-p.machine.lost:
		return true
	default:
		return false
	}
}

// attempts is the number of times that a plugin asks before its sandbox fails.
const attempts = 6

// ask asks one replica and then the other, as a plugin with both in its configuration.
func (p *pod) ask(method string) (a plugin.Answer, err error) {
	r := wire.AllocateRequest{
		Host: p.machine.ip, ContainerID: p.sandbox, IfName: "eth0", PodName: p.object.Name, PodNamespace: p.object.Namespace,
		PodUID:    string(p.object.UID),
		StartedAt: store.FormatTime(p.started),
	}
	if method == http.MethodDelete {
		r.StartedAt = store.FormatTime(time.Now())
	}
	first := p.below(len(p.replicas))
	for n := range attempts {
		ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
		a, err = plugin.Ask(ctx, p.http, method, p.replicas[(first+n)%len(p.replicas)].URL, r)
		cancel()
		if err == nil && a.Reason != ipam.ReasonUnavailable && a.Reason != ipam.ReasonOutcomeUnknown || p.ctx.Err() != nil {
			break
		}
		p.await(300*time.Millisecond, nil)
	}
	return a, err
}

// report says in the pod's status that it runs.
func (p *pod) report() bool {
	now := metav1.Now()
	o := p.object.DeepCopy()
	o.Status.Phase, o.Status.StartTime = corev1.PodRunning, &now
	o.Status.HostIP, o.Status.HostIPs = p.machine.ip, []corev1.HostIP{{IP: p.machine.ip}}
	o.Status.PodIP, o.Status.PodIPs = p.address, []corev1.PodIP{{IP: p.address}}
	for _, c := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		o.Status.Conditions = append(o.Status.Conditions,
			corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	return p.admin.Status().Patch(p.ctx, o, client.MergeFrom(p.object)) == nil
}

// finish ends the pod: its containers, its sandbox, its object, as a rule in this order.
func (p *pod) finish() {
	if d, err := time.ParseDuration(p.object.Annotations[slowly]); err == nil {
		p.await(d, p.gone)
	}
	late := p.object.Annotations[inOrder] == "" && p.chance(6)
	if late {
		p.remove()
		p.await(time.Duration(p.below(3000))*time.Millisecond, nil)
	}
	if p.isLost() {
		return
	}
	p.del()
	if !late {
		p.remove()
	}
}

// remove deletes the object, as at the end of its grace period.
func (p *pod) remove() {
	for p.ctx.Err() == nil && !p.isLost() {
		err := p.admin.Delete(p.ctx, p.object.DeepCopy(), client.GracePeriodSeconds(0),
			client.Preconditions{UID: &p.object.UID})
		if client.IgnoreNotFound(err) == nil || !p.await(100*time.Millisecond, p.gone) {
			return
		}
	}
}

package sticky_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// took writes down that a pod was told an address, and whether another one has it that is there.
func (p *pod) took(address string) {
	p.address = address
	p.kubelet.mu.Lock()
	before := p.holders[address]
	p.holders[address] = p
	delete(p.refusals, client.ObjectKeyFromObject(p.object))
	p.kubelet.mu.Unlock()
	if before == nil || before == p {
		return
	}
	// The user's word counts for one whose object is gone, and an answer that comes after that is nobody's.
	if before.exists() && p.exists() {
		p.blame("%s is held by pod %s (%s), which is there, and was given to pod %s (%s)", address, before.name(),
			before.object.UID, p.name(), p.object.UID)
	}
}

// exists says whether the pod's object is there.
func (p *pod) exists() bool {
	var o corev1.Pod
	err := p.admin.Get(p.ctx, p.name(), &o)
	return !apierrors.IsNotFound(err) && o.UID == p.object.UID && p.ctx.Err() == nil
}

// gaveUp writes down that a pod is about to give its address up.
func (p *pod) gaveUp() {
	p.kubelet.mu.Lock()
	defer p.kubelet.mu.Unlock()
	if p.address != "" && p.holders[p.address] == p {
		delete(p.holders, p.address)
	}
}

func (p *pod) refused(r refusal) {
	p.kubelet.mu.Lock()
	defer p.kubelet.mu.Unlock()
	p.refusals[p.name()] = r
}

func (p *pod) name() types.NamespacedName { return client.ObjectKeyFromObject(p.object) }

// blame writes down what must never happen.
func (k *kubelet) blame(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wrong = append(k.wrong, fmt.Sprintf(format, args...))
}

func (k *kubelet) violations() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.wrong)
}

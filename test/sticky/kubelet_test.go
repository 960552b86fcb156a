package sticky_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodesLabel says which sites' pods a node takes.
const nodesLabel = "sticky.test/nodes"

// kubelet is the agents of all nodes: it brings up the pods that are bound to them, and takes them down.
type kubelet struct {
	*fixture
	ctx     context.Context
	http    *http.Client
	workers sync.WaitGroup

	mu       sync.Mutex
	numbers  int // of pools
	nodes    int // that there ever were
	machines map[string]*machine
	pods     map[types.UID]*pod
	// holders are by address those that were told it and have not begun to give it up.
	holders map[string]*pod
	// refusals are by pod what its last sandbox was refused with.
	refusals map[types.NamespacedName]refusal
	wrong    []string
}

// machine is a node.
type machine struct {
	name, ip string
	// lost is closed when nothing runs on it any more.
	lost chan struct{}
}

// refusal is what a kubelet would show as an event of the pod.
type refusal struct{ reason, message string }

func newKubelet(ctx context.Context, f *fixture, h *http.Client) *kubelet {
	return &kubelet{
		fixture: f, ctx: ctx, http: h,
		machines: map[string]*machine{}, pods: map[types.UID]*pod{}, holders: map[string]*pod{},
		refusals: map[types.NamespacedName]refusal{},
	}
}

// nodeNet is where the nodes are.
const nodeNet = "10.0.0.0/16"

// nodeIP is the address of a node.
func nodeIP(i int) string { return fmt.Sprintf("10.0.%d.%d", i/250, i%250+1) }

// number is a new one each time.
func (k *kubelet) number() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.numbers++
	return k.numbers
}

// addNodes makes n nodes that take the pods of the sites that name them.
func (k *kubelet) addNodes(t *testing.T, nodes string, n int) {
	t.Helper()
	for range n {
		k.mu.Lock()
		i := k.nodes
		k.nodes++
		k.mu.Unlock()
		m := &machine{name: fmt.Sprintf("%s-%d", nodes, i), ip: nodeIP(i), lost: make(chan struct{})}
		k.mu.Lock()
		k.machines[m.name] = m
		k.mu.Unlock()
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: m.name, Labels: map[string]string{corev1.LabelHostname: m.name, nodesLabel: nodes},
			},
			Status: corev1.NodeStatus{
				Capacity: resources(),
				Conditions: []corev1.NodeCondition{{
					Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(),
					LastTransitionTime: metav1.Now(),
				}},
				Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: m.ip}},
			},
		}
		node.Status.Allocatable = node.Status.Capacity
		k.create(t, node)
		k.create(t, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: m.name},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &m.name, LeaseDurationSeconds: new(int32(40)), RenewTime: new(metav1.NowMicro()),
			},
		})
	}
}

// beat renews the Leases of the nodes, which says that they live.
func (k *kubelet) beat(ctx context.Context) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		k.mu.Lock()
		all := make([]*machine, 0, len(k.machines))
		for _, m := range k.machines {
			all = append(all, m)
		}
		k.mu.Unlock()
		var group errgroup.Group
		group.SetLimit(8)
		for _, m := range all {
			group.Go(func() error { return k.renew(ctx, m) })
		}
		_ = group.Wait() // the next time may go better
	}
}

func (k *kubelet) renew(ctx context.Context, m *machine) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: m.name}}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": metav1.NowMicro()}})
	if err != nil {
		return err
	}
	return k.admin.Patch(ctx, l, client.RawPatch(types.MergePatchType, patch))
}

// lose takes a node away: its agent falls silent, and somebody deletes the Node and the pods that were there.
func (k *kubelet) lose(t *testing.T, name string) {
	t.Helper()
	k.mu.Lock()
	m := k.machines[name]
	delete(k.machines, name)
	k.mu.Unlock()
	close(m.lost)
	if err := k.admin.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// handler is told of all pods.
func (k *kubelet) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.set(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { k.set(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			if p := k.pods[o.(*corev1.Pod).UID]; p != nil {
				p.end.Do(func() { close(p.ending) })
				p.vanish.Do(func() { close(p.gone) })
			}
		},
	}
}

func (k *kubelet) set(o *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.machines[o.Spec.NodeName]
	p := k.pods[o.UID]
	switch {
	case k.ctx.Err() != nil, p == nil && m == nil:
		return
	case p == nil:
		p = &pod{kubelet: k, machine: m, object: o, ending: make(chan struct{}), gone: make(chan struct{})}
		k.pods[o.UID] = p
		k.workers.Go(p.live)
	}
	if o.DeletionTimestamp != nil {
		p.end.Do(func() { close(p.ending) })
	}
}

// wait waits until all pods' workers have ended.
func (k *kubelet) wait() { k.workers.Wait() }

// lastRefusal is what the last sandbox of a pod was refused with.
func (k *kubelet) lastRefusal(namespace, name string) (refusal, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.refusals[types.NamespacedName{Namespace: namespace, Name: name}]
	return r, ok
}

package faults_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// movingHost is a further address that some of the nodes have in turn.
const (
	movingHost  = "10.9.0.11"
	movingHosts = 2 // the first so many nodes
	eventMoved  = "event address moved to another node"
	eventSecond = "event ADD by the second address of a node"
	eventByIt   = "event ADD by the address that moves"
)

// nodes are what is said of the hosts: each has two addresses, and one of the first ones a third.
type nodes struct {
	mu    sync.Mutex
	ready [hosts]bool
	// moving is one more than the node that has movingHost; 0 for none.
	moving int
}

func secondHost(i int) string { return "10.8" + host(i)[len("10.0"):] }

// addresses are those of a host at this moment.
func (f *fixture) addresses(h int) []string {
	f.nodes.mu.Lock()
	defer f.nodes.mu.Unlock()
	return f.nodes.addresses(h)
}

func (n *nodes) addresses(h int) []string {
	if n.moving == h+1 {
		return []string{host(h), secondHost(h), movingHost}
	}
	return []string{host(h), secondHost(h)}
}

// setReady writes into the status of a host whether it is ready.
func (f *fixture) setReady(ctx context.Context, h int, ready corev1.ConditionStatus) error {
	f.nodes.mu.Lock()
	f.nodes.ready[h] = ready == corev1.ConditionTrue
	f.nodes.mu.Unlock()
	return f.writeNode(ctx, h)
}

// writeNode writes the status of a host as it is.
func (f *fixture) writeNode(ctx context.Context, h int) error {
	f.nodes.mu.Lock()
	defer f.nodes.mu.Unlock() // what is written last is what is true
	status := corev1.ConditionUnknown
	if f.nodes.ready[h] {
		status = corev1.ConditionTrue
	}
	var all []corev1.NodeAddress
	for _, text := range f.nodes.addresses(h) {
		all = append(all, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: text})
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"addresses": all, "conditions": []map[string]any{{"type": corev1.NodeReady, "status": status}},
	}})
	if err != nil {
		return err
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node(h)}}
	return f.admin.Status().Patch(ctx, n, client.RawPatch(types.MergePatchType, patch))
}

// readdress has an address move from node to node: it leaves the one before the next has it. Whoever asked by it asks
// by another one then.
func (r *round) readdress(rng *rand.Rand) {
	for n := 0; r.loading(); n++ {
		r.island.none.Lock() // see known
		r.move(0)
		r.while(rng, time.Second, 4*time.Second)
		r.fault("address moved to another node", node(n%movingHosts), func() { r.move(1 + n%movingHosts) })
		r.island.none.Unlock()
		if n > 0 {
			r.Count(eventMoved)
		}
		r.between(rng, max(8*time.Second, r.length/12))
	}
}

// known reports whether the host that a container asked by is an address of its node still. Once it has moved, and the
// controller began anew since, nothing tells it on which of the nodes the container is.
func (r *round) known(b *sandbox) bool { return slices.Contains(r.site.addresses(b.host), b.asked) }

func (r *round) move(to int) {
	r.site.nodes.mu.Lock()
	from := r.site.nodes.moving
	r.site.nodes.moving = to
	r.site.nodes.mu.Unlock()
	for _, h := range []int{from - 1, to - 1} {
		if h >= 0 {
			until(context.WithoutCancel(r.ctx), func(ctx context.Context) error { return r.site.writeNode(ctx, h) })
		}
	}
}

// caller is the address by which a container's host asks now: that of the last request, unless the host has it no more.
func (r *round) caller(b *sandbox) string {
	all := r.site.addresses(b.host)
	return all[min(b.by, len(all)-1)]
}

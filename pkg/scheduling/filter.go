package scheduling

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Why a node is not for a pod, in the words of galaxy-ipam. They are the same for all nodes: the scheduler counts
// nodes by them.
const (
	Prefix = "FloatingIPPlugin:"
	// NoAddressLeft: the pools of the node have no address for the pod at present.
	NoAddressLeft = Prefix + "NoFIPLeft"
	// NoPool: no pool is for the node.
	NoPool = Prefix + "NoFIPConfigNode"
	// UnknownNode: there is no such node, or it has no address.
	UnknownNode = Prefix + "UnknowNode"
)

// MaxScore is the best score of a node.
const MaxScore = 10

// patience is how long a pod waits for another one that was let through a moment before and may or may not take the
// address that is left: the scheduler's binding of it is on its way.
const patience = time.Second

// Extender filters and scores nodes for pods. Its fields do not change once it is in use; its methods may be called at
// the same time.
type Extender struct {
	Index       *index.Index
	Constraints allocator.ConstraintsFinder
	Pods        allocator.PodFinder
	// NodeAddrs are the addresses of a node; none for one that is not known.
	NodeAddrs func(node string) []netip.Addr
	// Now is the API server's time.
	Now       func() time.Time
	Resources Resources

	mu      sync.Mutex
	assumed assumeCache
}

// New makes an extender that has assumed no pod yet.
func New(
	index *index.Index, constraints allocator.ConstraintsFinder, pods allocator.PodFinder,
	nodeAddrs func(string) []netip.Addr, now func() time.Time, r Resources,
) *Extender {
	return &Extender{
		Index: index, Constraints: constraints, Pods: pods, NodeAddrs: nodeAddrs, Now: now, Resources: r,
		assumed: newAssumeCache(),
	}
}

// FilterResult names the nodes that a pod may go to, in the order of the question, and says why the others are not for
// it.
type FilterResult struct {
	Pass   []string
	Failed map[string]string
	// Refusal explains why no node is for the pod, as the answer to a request on one of them would; nil where a node
	// passes. Request is that request.
	Refusal *ipam.Refusal
	Request allocator.Request
}

// concerns reports whether a pod takes an address because it asks for one of the resources.
func (e *Extender) concerns(pod *corev1.Pod) bool {
	return e.Resources.Requested(pod) && !pod.Spec.HostNetwork
}

// simulation finds the constraints of a pod.
func (e *Extender) simulation(ctx context.Context, pod workload.Pod) (*allocator.Simulation, error) {
	constraints, err := e.Constraints.Of(ctx, pod)
	if err != nil {
		return nil, err
	}
	return allocator.NewSimulation(e.Index, pod, constraints), nil
}

// Filter returns which nodes are for a pod. A pod that does not ask for an address may go anywhere. A pod that is let
// through counts from then on, until it has its address, is gone, or half a minute has passed and it is on no node.
// There is an error where that is not known at present.
func (e *Extender) Filter(ctx context.Context, o *corev1.Pod, nodes []string) (FilterResult, error) {
	if !e.concerns(o) {
		return FilterResult{Pass: nodes}, nil
	}
	pod := workload.FromObject(o)
	p, err := e.simulation(ctx, pod)
	if refusal, ok := errors.AsType[*ipam.Refusal](err); ok && refusal.Reason != ipam.ReasonUnavailable {
		v := FilterResult{
			Failed: map[string]string{}, Refusal: refusal,
			Request: allocator.Request{Namespace: pod.Namespace, PodName: pod.Name, PodUID: pod.UID},
		}
		for _, n := range nodes {
			v.Failed[n] = Prefix + string(refusal.Reason) + ": " + refusal.Message
		}
		return v, nil
	}
	if err != nil {
		return FilterResult{}, err
	}
	// Only a pod that is there is counted on: whoever asks about others keeps nobody from an address.
	exists := false
	if pod.UID != "" {
		_, err := e.Pods.Find(ctx, pod.Namespace, pod.Name, pod.UID, netip.Addr{})
		exists = err == nil
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	for {
		if err := e.readConstraints(ctx); err != nil {
			return FilterResult{}, err
		}
		v, open := e.filter(pod, p, nodes, exists)
		if open == nil {
			return v, nil
		}
		select {
		case <-open:
		case <-wait.C:
			return v, nil
		case <-ctx.Done():
			return v, ctx.Err()
		}
	}
}

// filter decides once. open is closed when the answer may have become another one, nil where that is not to be
// expected soon: no node is for the pod, and one would be but for pods that are on their way to some node.
func (e *Extender) filter(
	pod workload.Pod, p *allocator.Simulation, nodes []string, exists bool,
) (v FilterResult, open <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.Now()
	e.refresh(now)
	v, addrs := e.evaluate(p, nodes, now, e.promised(pod.UID, false))
	if old := e.assumed.pods[pod.UID]; old != nil && old.pod.Node != "" {
		return v, nil // it is placed already, whoever asks
	}
	e.assumed.drop(pod.UID)
	switch {
	case len(v.Pass) > 0 && exists:
		mine := &assumedPod{pod: pod, simulation: p, known: true, at: time.Now()}
		e.assumed.pods[pod.UID] = mine
		e.assign(mine, addrs)
	case len(v.Pass) == 0 && len(e.assumed.chosen()) > 0:
		if other, _ := e.evaluate(p, nodes, now, e.promised(pod.UID, true)); len(other.Pass) > 0 {
			return v, e.assumed.changed
		}
	}
	return v, nil
}

// outlook is what a pod finds on a kind of host.
type outlook struct {
	// why it is none; empty where it is one.
	why string
	// kept: the pod gets an address that is kept for it. elsewhere: it would get another, while one is kept for it;
	// near: it would get that if the host might have one more.
	kept, elsewhere, near bool
	host                  netip.Addr
	addrs                 []netip.Addr
}

// evaluate asks about each kind of host once: nothing else of a host decides what a pod gets there. addrs are
// all that it might get.
func (e *Extender) evaluate(
	p *allocator.Simulation, nodes []string, now time.Time, promised allocator.Promises,
) (v FilterResult, addrs []netip.Addr) {
	v.Failed = map[string]string{}
	awaited, earlier := p.Awaited(now, promised), p.Earlier()
	kinds, inOrder := map[string]*outlook{}, []*outlook{}
	look := func(host netip.Addr) *outlook {
		kind := e.Index.KindOf(host, func(pool string) []netip.Addr { return promised.OnHost(host, pool) })
		if kind != "" && slices.Contains(earlier, host) {
			kind += host.String()
		}
		if k := kinds[kind]; k != nil {
			return k
		}
		k := &outlook{host: host}
		kinds[kind] = k
		inOrder = append(inOrder, k)
		o, refusal := p.On(host, now, promised)
		switch {
		case kind == "":
			if k.why = NoPool; v.Refusal == nil {
				v.Refusal, v.Request = refusal, p.Request(host)
			}
		case refusal != nil:
			k.why, v.Refusal, v.Request = NoAddressLeft, refusal, p.Request(host)
		case awaited && !o.Kept:
			k.elsewhere, k.near = true, p.Near(host, now, promised)
		default:
			k.kept = o.Kept
		}
		k.addrs = o.Addrs
		return k
	}
	hosts := make([][]*outlook, len(nodes))
	for i, n := range nodes {
		for _, host := range e.NodeAddrs(n) {
			hosts[i] = append(hosts[i], look(host))
		}
	}
	// While an address is kept for the pod it goes where that is; where no node may have it, to one that is kept from
	// it by what one host may have alone, if that has another pool.
	there := slices.ContainsFunc(inOrder, func(k *outlook) bool { return k.kept })
	for _, k := range inOrder {
		if k.elsewhere && (there || !k.near) {
			k.why, v.Request = NoAddressLeft, p.Request(k.host)
			v.Refusal = ipam.Refuse(ipam.ReasonClaimConflict,
				"an address of the claim is kept for the pod, and host %s cannot have it", k.host).
				WithHint("let the pod run where its pool serves, or give the address up: bcsnetctl ip release ADDRESS")
		}
	}
	for i, n := range nodes {
		worst := UnknownNode
		for _, k := range hosts[i] {
			if k.why == "" || worst != NoAddressLeft {
				worst = k.why
			}
			if k.why == "" {
				addrs = append(addrs, k.addrs...)
				break
			}
		}
		if worst == "" {
			v.Pass = append(v.Pass, n)
		} else {
			v.Failed[n] = worst
		}
	}
	if len(v.Pass) > 0 {
		v.Refusal = nil
	}
	return v, addrs
}

// Scores returns the scores of nodes, 0 to MaxScore, by how many addresses for pods like this one they have left: the
// best of them has the most. A pod that does not ask for an address has no favourites.
func (e *Extender) Scores(ctx context.Context, o *corev1.Pod, nodes []string) (scores []int64, err error) {
	scores = make([]int64, len(nodes))
	if !e.concerns(o) {
		return scores, nil
	}
	p, err := e.simulation(ctx, workload.FromObject(o))
	if err != nil {
		if refusal, ok := errors.AsType[*ipam.Refusal](err); ok && refusal.Reason != ipam.ReasonUnavailable {
			return scores, nil
		}
		return nil, err
	}
	now, rooms, most := e.Now(), make([]uint64, len(nodes)), uint64(0)
	kinds := map[string]uint64{}
	for i, n := range nodes {
		for _, host := range e.NodeAddrs(n) {
			kind := e.Index.KindOf(host, nil)
			room, ok := kinds[kind]
			if !ok {
				room = p.Room(host, now)
				kinds[kind] = room
			}
			rooms[i] = max(rooms[i], room)
		}
		most = max(most, rooms[i])
	}
	for i, room := range rooms {
		if room > 0 {
			scores[i] = int64(math.Ceil(MaxScore * (float64(room) / float64(most))))
		}
	}
	return scores, nil
}

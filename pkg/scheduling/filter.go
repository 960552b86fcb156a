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

// Reasons why a node is not suitable for a pod, in galaxy-ipam's words. They do not contain the node's name, because
// the scheduler counts nodes by reason.
const (
	Prefix = "FloatingIPPlugin:"
	// NoAddressLeft: the pools of the node have no address for the pod at present.
	NoAddressLeft = Prefix + "NoFIPLeft"
	// NoPool: no pool serves the node.
	NoPool = Prefix + "NoFIPConfigNode"
	// UnknownNode: the node does not exist, or has no address.
	UnknownNode = Prefix + "UnknowNode"
)

// MaxScore is the best score of a node.
const MaxScore = 10

// patience is the time for which a pod waits for another one that just passed the filter and may take the last address:
// the scheduler's binding of that pod is in progress.
const patience = time.Second

// Extender filters and scores nodes for pods. Its fields do not change once it is in use; its methods may be called at
// the same time.
type Extender struct {
	Index       *index.Index
	Constraints allocator.ConstraintsFinder
	Pods        allocator.PodFinder
	// NodeAddrs returns the addresses of a node; none if the node is not known.
	NodeAddrs func(node string) []netip.Addr
	// Now returns the API server's time.
	Now       func() time.Time
	Resources Resources

	mu      sync.Mutex
	assumed assumeCache
}

// New returns an Extender without assumed pods.
func New(
	index *index.Index, constraints allocator.ConstraintsFinder, pods allocator.PodFinder,
	nodeAddrs func(string) []netip.Addr, now func() time.Time, r Resources,
) *Extender {
	return &Extender{
		Index: index, Constraints: constraints, Pods: pods, NodeAddrs: nodeAddrs, Now: now, Resources: r,
		assumed: newAssumeCache(),
	}
}

// FilterResult names the suitable nodes of a pod, in the order of the question, and says why the others are not
// suitable.
type FilterResult struct {
	Pass   []string
	Failed map[string]string
	// Refusal is the refusal that a request on one of the nodes would get; nil if a node is suitable. Request is that
	// request.
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

// Filter returns the suitable nodes of a pod. A pod that does not ask for an address may go to any node. A pod that
// passes counts from then on, until it has its address, is gone, or has no node after half a minute. The error means
// that the answer is not known at present.
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
	// Only an existing pod is counted: questions about other pods must not keep anybody from an address.
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

// filter decides once. open is closed when the answer may have changed. It is nil if no change is to be expected soon.
// A change can be expected if no node is suitable, but one would be without pods that are being placed.
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
	// why is the reason why such a host is not suitable; empty if it is.
	why string
	// kept reports whether the pod gets an address that is kept for it. elsewhere reports whether it would get another
	// address, although one is kept for it. near reports whether it would get the kept one if the host could have one
	// more.
	kept, elsewhere, near bool
	host                  netip.Addr
	addrs                 []netip.Addr
}

// evaluate evaluates each kind of host once: no other property of a host matters for a pod there. addrs are all
// addresses that it might get.
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
	// If an address is kept for the pod, the pod goes to nodes on which it gets that address. If there is none, it may
	// go to a node that only maxPerHost keeps from the address, if that node has another pool.
	there := slices.ContainsFunc(inOrder, func(k *outlook) bool { return k.kept })
	for _, k := range inOrder {
		if k.elsewhere && (there || !k.near) {
			k.why, v.Request = NoAddressLeft, p.Request(k.host)
			v.Refusal = ipam.Refuse(ipam.ReasonClaimConflict,
				"an address of the claim is kept for the pod, and host %s cannot have it", k.host).
				WithHint("let the pod run on a host of its pool, or give the address up: bcsnetctl ip release ADDRESS")
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

// Scores returns the scores of nodes, 0 to MaxScore, by the numbers of addresses that they have left for pods like this
// one: the node with most gets MaxScore. For a pod that does not ask for an address, all scores are equal.
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

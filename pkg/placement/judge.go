package placement

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

// Judge judges nodes. Its fields are not changed once it is in use; its methods may be called at the same time.
type Judge struct {
	Index *ipam.Index
	Terms allocator.TermsFinder
	Pods  allocator.PodFinder
	// NodeAddrs are the addresses of a node; none for one that is not known.
	NodeAddrs func(node string) []netip.Addr
	// Now is the API server's time.
	Now       func() time.Time
	Resources Resources

	mu     sync.Mutex
	ledger ledger
}

// New makes a judge that remembers nothing yet.
func New(index *ipam.Index, terms allocator.TermsFinder, pods allocator.PodFinder, nodeAddrs func(string) []netip.Addr, now func() time.Time, r Resources) *Judge {
	return &Judge{Index: index, Terms: terms, Pods: pods, NodeAddrs: nodeAddrs, Now: now, Resources: r, ledger: newLedger()}
}

// Verdict is which nodes are for a pod, in the order of the question, and why others are not.
type Verdict struct {
	Pass   []string
	Failed map[string]string
	// Refusal says of a pod for which no node is why, as a request on one of them would be told; nil where a node
	// passes. Request is that request.
	Refusal *ipam.Refusal
	Request allocator.Request
}

// concerns says whether a pod takes an address because it asks for one of the resources.
func (j *Judge) concerns(pod *corev1.Pod) bool {
	return j.Resources.Requested(pod) && !pod.Spec.HostNetwork
}

// prospect finds the terms of a pod.
func (j *Judge) prospect(ctx context.Context, pod workload.Pod) (*allocator.Prospect, error) {
	terms, err := j.Terms.Of(ctx, pod)
	if err != nil {
		return nil, err
	}
	return allocator.NewProspect(j.Index, pod, terms), nil
}

// Filter says which nodes are for a pod. A pod that does not ask for an address may go anywhere. A pod that is let
// through counts from then on, until it has its address, is gone, or half a minute has passed and it is on no node. The
// error says that it cannot be told at present.
func (j *Judge) Filter(ctx context.Context, o *corev1.Pod, nodes []string) (Verdict, error) {
	if !j.concerns(o) {
		return Verdict{Pass: nodes}, nil
	}
	pod := workload.FromObject(o)
	p, err := j.prospect(ctx, pod)
	if refusal, ok := errors.AsType[*ipam.Refusal](err); ok && refusal.Reason != ipam.ReasonUnavailable {
		v := Verdict{Failed: map[string]string{}, Refusal: refusal, Request: allocator.Request{Namespace: pod.Namespace, PodName: pod.Name, PodUID: pod.UID}}
		for _, n := range nodes {
			v.Failed[n] = Prefix + string(refusal.Reason) + ": " + refusal.Message
		}
		return v, nil
	}
	if err != nil {
		return Verdict{}, err
	}
	// Only a pod that is there is counted on: whoever asks about others keeps nobody from an address.
	exists := false
	if pod.UID != "" {
		_, err := j.Pods.Find(ctx, pod.Namespace, pod.Name, pod.UID, netip.Addr{})
		exists = err == nil
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	for {
		if err := j.learn(ctx); err != nil {
			return Verdict{}, err
		}
		v, open := j.judge(pod, p, nodes, exists)
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

// judge decides once. open is closed when the answer may have become another one, nil where that is not to be
// expected soon: no node is for the pod, and one would be but for pods that are on their way to some node.
func (j *Judge) judge(pod workload.Pod, p *allocator.Prospect, nodes []string, exists bool) (v Verdict, open <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.Now()
	j.settle(now)
	v, addrs := j.survey(p, nodes, now, j.promised(pod.UID, false))
	if old := j.ledger.promises[pod.UID]; old != nil && old.pod.Node != "" {
		return v, nil // it is placed already, whoever asks
	}
	j.ledger.drop(pod.UID)
	switch {
	case len(v.Pass) > 0 && exists:
		mine := &promise{pod: pod, prospect: p, known: true, at: time.Now()}
		j.ledger.promises[pod.UID] = mine
		j.assign(mine, addrs)
	case len(v.Pass) == 0 && len(j.ledger.chosen()) > 0:
		if other, _ := j.survey(p, nodes, now, j.promised(pod.UID, true)); len(other.Pass) > 0 {
			return v, j.ledger.changed
		}
	}
	return v, nil
}

// outlook is what a pod finds on a kind of host.
type outlook struct {
	// why it is none; empty where it is one.
	why string
	// kept: the pod gets an address that is kept for it. elsewhere: it would get another, while one is kept for it; near: it
	// would get that if the host might have one more.
	kept, elsewhere, near bool
	host                  netip.Addr
	addrs                 []netip.Addr
}

// survey asks about each kind of host once: nothing else of a host decides what a pod gets there. addrs are
// all that it might get.
func (j *Judge) survey(p *allocator.Prospect, nodes []string, now time.Time, promised allocator.Promises) (v Verdict, addrs []netip.Addr) {
	v.Failed = map[string]string{}
	awaited, earlier := p.Awaited(now, promised), p.Earlier()
	kinds, inOrder := map[string]*outlook{}, []*outlook{}
	look := func(host netip.Addr) *outlook {
		kind := j.Index.KindOf(host, func(pool string) []netip.Addr { return promised.OnHost(host, pool) })
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
		for _, host := range j.NodeAddrs(n) {
			hosts[i] = append(hosts[i], look(host))
		}
	}
	// While an address is kept for the pod it goes where that is; where no node may have it, to one that is kept from it by
	// what one host may have alone, if that has another pool.
	there := slices.ContainsFunc(inOrder, func(k *outlook) bool { return k.kept })
	for _, k := range inOrder {
		if k.elsewhere && (there || !k.near) {
			k.why, v.Request = NoAddressLeft, p.Request(k.host)
			v.Refusal = ipam.Refuse(ipam.ReasonClaimConflict, "an address of the claim is kept for the pod, and host %s cannot have it", k.host).
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

// Scores are those of nodes, 0 to MaxScore, by how many addresses for pods like this one they have left: the best of
// them has the most. A pod that does not ask for an address has no favourites.
func (j *Judge) Scores(ctx context.Context, o *corev1.Pod, nodes []string) (scores []int64, err error) {
	scores = make([]int64, len(nodes))
	if !j.concerns(o) {
		return scores, nil
	}
	p, err := j.prospect(ctx, workload.FromObject(o))
	if err != nil {
		if refusal, ok := errors.AsType[*ipam.Refusal](err); ok && refusal.Reason != ipam.ReasonUnavailable {
			return scores, nil
		}
		return nil, err
	}
	now, rooms, most := j.Now(), make([]uint64, len(nodes)), uint64(0)
	kinds := map[string]uint64{}
	for i, n := range nodes {
		for _, host := range j.NodeAddrs(n) {
			kind := j.Index.KindOf(host, nil)
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

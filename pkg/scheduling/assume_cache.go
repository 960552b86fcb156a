package scheduling

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// chosenLife is the time for which a pod that passed the filter is remembered: its binding follows within some
// milliseconds, or after its volumes are ready.
const chosenLife = 30 * time.Second

// maxChosen bounds the pods that passed the filter and are not on a node yet. Beyond it, the oldest are forgotten.
const maxChosen = 4096

// assumedPod is a pod that passed the filter for some nodes, or is on its node, and has no address yet. Its addresses
// are those that the allocator would choose for it now. They remain available to any request for an address, but other
// pods that are being placed do not count on them.
type assumedPod struct {
	pod        workload.Pod
	simulation *allocator.Simulation
	// known reports whether the simulation has the constraints of the pod. For a pod that was found on its node they
	// are read once; hopeless reports whether they were refused.
	known, hopeless bool
	// reading is closed after the constraints have been read; nil while nobody reads them. changes is the number of
	// changes of the pod.
	reading chan struct{}
	changes int
	// addrs are the addresses that it would get on node, or on any of the nodes for which it passed the filter if node
	// is empty. host is the address of node by which it would get them, pools are the pools of addrs.
	addrs []netip.Addr
	pools []string
	node  string
	host  netip.Addr
	// claim is the claim from which it draws. fresh is, by family, the number of addresses that it takes and the claim
	// does not have: those of addrs on its node. Before it has a node, addrs are of many nodes, and the number is one
	// unless the claim keeps some of them.
	claim string
	fresh map[ipaddr.Family]int
	// at is the time at which it passed the filter; zero after it is on a node.
	at time.Time
}

// assumeCache has the assumed pods by UID.
type assumeCache struct {
	pods map[string]*assumedPod
	// owner maps an address to the UID of the pod for which it is assumed.
	owner map[netip.Addr]string
	// on has the addresses that are assumed for pods on their nodes, with these pods, by host and pool.
	on map[place]map[netip.Addr]string
	// changed is closed at the next change.
	changed chan struct{}
}

// place is a host, and a pool from which the pod will have an address.
type place struct {
	host netip.Addr
	pool string
}

func newAssumeCache() assumeCache {
	return assumeCache{
		pods: map[string]*assumedPod{}, owner: map[netip.Addr]string{}, on: map[place]map[netip.Addr]string{},
		changed: make(chan struct{}),
	}
}

func (l *assumeCache) signal() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// assign replaces the addresses of an assumed pod, with the pool of each.
func (l *assumeCache) assign(p *assumedPod, addrs []netip.Addr, pools []string) {
	for i, a := range p.addrs {
		if l.owner[a] == p.pod.UID {
			delete(l.owner, a)
		}
		at := place{p.host, p.pools[i]}
		if l.on[at][a] == p.pod.UID {
			if delete(l.on[at], a); len(l.on[at]) == 0 {
				delete(l.on, at)
			}
		}
	}
	p.addrs, p.pools = addrs, pools
	for i, a := range addrs {
		l.owner[a] = p.pod.UID
		if at := (place{p.host, pools[i]}); p.host.IsValid() {
			if l.on[at] == nil {
				l.on[at] = map[netip.Addr]string{}
			}
			l.on[at][a] = p.pod.UID
		}
	}
}

func (l *assumeCache) drop(uid string) {
	if p, ok := l.pods[uid]; ok {
		l.assign(p, nil, nil)
		delete(l.pods, uid)
		l.signal()
	}
}

// chosen returns the pods that passed the filter and are not on a node yet, the oldest first.
func (l *assumeCache) chosen() (uids []string) {
	for uid, p := range l.pods {
		if p.pod.Node == "" {
			uids = append(uids, uid)
		}
	}
	slices.SortFunc(uids, func(a, b string) int { return l.pods[a].at.Compare(l.pods[b].at) })
	return uids
}

// PodChanged records a pod from the cache.
func (e *Extender) PodChanged(o *corev1.Pod) {
	if !e.Resources.Requested(o) || o.Spec.HostNetwork {
		return
	}
	pod := workload.FromObject(o)
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.assumed.pods[pod.UID]
	switch {
	case pod.Ended || pod.Deleting:
		e.assumed.drop(pod.UID)
	case pod.Node == "":
	case p != nil && p.pod.Node == "":
		p.pod = pod
		e.assumed.signal()
	case p != nil && p.simulation.Holds():
		e.assumed.drop(pod.UID)
	case p != nil:
		p.pod, p.hopeless = pod, false
		p.changes++
	default:
		p = &assumedPod{pod: pod, simulation: allocator.NewSimulation(e.Index, pod, allocator.Constraints{})}
		if !p.simulation.Holds() {
			e.assumed.pods[pod.UID] = p
		}
	}
}

// PodGone removes a deleted pod.
func (e *Extender) PodGone(o *corev1.Pod) {
	uid := workload.FromObject(o).UID
	e.mu.Lock()
	defer e.mu.Unlock()
	e.assumed.drop(uid)
}

// Assumed removes outdated entries, and returns the numbers of placed pods without an address and of pods that passed
// the filter and are not placed yet.
func (e *Extender) Assumed() (placed, chosen int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tidy()
	chosen = len(e.assumed.chosen())
	return len(e.assumed.pods) - chosen, chosen
}

// tidy removes outdated entries: pods that have their address, and those that passed the filter long ago and were not
// placed.
func (e *Extender) tidy() {
	for uid, p := range e.assumed.pods {
		if p.simulation.Holds() {
			e.assumed.drop(uid)
		}
	}
	chosen := e.assumed.chosen()
	for i, uid := range chosen {
		if p := e.assumed.pods[uid]; i < len(chosen)-maxChosen || time.Since(p.at) > chosenLife {
			e.assumed.drop(uid)
		}
	}
}

// refresh updates the assumed pods: an address that another holder got in the meantime is replaced.
func (e *Extender) refresh(now time.Time) {
	e.tidy()
	for uid, p := range e.assumed.pods {
		switch {
		case p.pod.Node == "" || !p.known:
		case p.node != p.pod.Node, len(p.addrs) == 0,
			slices.ContainsFunc(p.addrs, func(a netip.Addr) bool { return e.gone(a, uid) }):
			e.place(p, now)
		}
	}
}

// readConstraints reads the constraints of the pods that were found on their nodes. It reads without the lock, and only
// one question at a time reads those of a pod: another question waits for the result, while the watches of pods do not
// wait. If a read fails, it is not repeated for the same question. It returns the context's error: nobody waits for the
// answer, and a pod must not pass the filter because of it.
func (e *Extender) readConstraints(ctx context.Context) error {
	tried := map[*assumedPod]bool{}
	for ctx.Err() == nil {
		p, pod, changes, reading := e.nextUnread(tried)
		switch {
		case p != nil:
			tried[p] = true
			constraints, err := e.Constraints.Of(ctx, pod)
			e.enterConstraints(p, pod, changes, constraints, err)
		case reading == nil:
			return nil
		default:
			select {
			case <-reading:
			case <-ctx.Done():
			}
		}
	}
	return ctx.Err()
}

// nextUnread returns a pod on its node whose constraints are not known. The caller must read them and pass them to
// enterConstraints. If others are reading those of all such pods, reading is closed when one of them is done.
func (e *Extender) nextUnread(
	tried map[*assumedPod]bool,
) (_ *assumedPod, pod workload.Pod, changes int, reading <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.assumed.pods {
		switch {
		case p.pod.Node == "" || p.known || p.hopeless || tried[p] || p.simulation.Holds():
		case p.reading != nil:
			reading = p.reading
		default:
			p.reading = make(chan struct{})
			return p, p.pod, p.changes, nil
		}
	}
	return nil, pod, 0, reading
}

// enterConstraints stores the constraints that were read for a pod, or the error.
func (e *Extender) enterConstraints(
	p *assumedPod, pod workload.Pod, changes int, constraints allocator.Constraints, err error,
) {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(p.reading)
	p.reading = nil
	var refusal *ipam.Refusal
	switch {
	case err == nil:
		p.simulation, p.known = allocator.NewSimulation(e.Index, pod, constraints), true
	case p.changes == changes:
		// It gets no address until something about it changes. If the read failed, it is repeated.
		p.hopeless = errors.As(err, &refusal) && refusal.Reason != ipam.ReasonUnavailable
	}
}

// gone reports whether an address that is assumed for a pod has another holder by now.
func (e *Extender) gone(a netip.Addr, uid string) bool {
	l, ok := e.Index.Leases.Get(a)
	if _, own := l.From(func(l lease.Lease) bool { return l.PodUID == uid }); own {
		return false
	}
	return ok && l.State == lease.Active
}

// place assumes for a pod the addresses that it would get on its node.
func (e *Extender) place(p *assumedPod, now time.Time) {
	e.assign(p, nil)
	p.node, p.at = p.pod.Node, time.Time{}
	for _, host := range e.NodeAddrs(p.pod.Node) {
		if o, refusal := p.simulation.On(host, now, e.promised(p.pod.UID, false)); refusal == nil {
			p.host = host
			e.assign(p, o.Addrs)
			return
		}
	}
}

// assign replaces the addresses of an assumed pod with all that it might get.
func (e *Extender) assign(p *assumedPod, addrs []netip.Addr) {
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs) // many nodes are of one kind
	pools, kept := make([]string, len(addrs)), map[ipaddr.Family]int{}
	p.claim, p.fresh = p.simulation.Claim(), map[ipaddr.Family]int{}
	for i, a := range addrs {
		pool, _ := e.Index.Pools.PoolOf(a)
		pools[i] = e.Index.Pools.CountedAs(pool) // whose bounds are the block's
		if l, _ := e.Index.Leases.Get(a); l.Claim == p.claim {
			kept[ipaddr.FamilyOf(a)]++
		} else {
			p.fresh[ipaddr.FamilyOf(a)]++
		}
	}
	for f, n := range p.fresh {
		if p.node == "" {
			p.fresh[f] = max(0, min(n, 1)-kept[f])
		}
	}
	e.assumed.assign(p, addrs, pools)
}

// byPool returns the addresses of an assumed pod by pool. A pod that is not on a node yet takes one address of a pool,
// whichever node it gets.
func (p *assumedPod) byPool() map[string][]netip.Addr {
	all := map[string][]netip.Addr{}
	for i, a := range p.addrs {
		if at := p.pools[i]; p.node != "" || len(all[at]) == 0 {
			all[at] = append(all[at], a)
		}
	}
	return all
}

// promised returns the addresses that are assumed for pods with another UID; if placed is set, only for those on their
// nodes. On a host, only pods on that host count: the number that the node publishes limits further ones, and the
// scheduler subtracts all pods that it has placed from it.
func (e *Extender) promised(self string, placed bool) allocator.Promises {
	type part struct {
		claim  string
		family ipaddr.Family
	}
	type charge struct{ namespace, pool string }
	var coming map[part]int // once for all that are asked about
	var charged map[charge][]netip.Addr
	return allocator.Promises{
		Address: func(a netip.Addr) bool {
			uid, ok := e.assumed.owner[a]
			return ok && uid != self && (!placed || e.assumed.pods[uid].pod.Node != "")
		},
		OnHost: func(host netip.Addr, pool string) (addrs []netip.Addr) {
			for a, uid := range e.assumed.on[place{host, pool}] {
				if uid != self {
					addrs = append(addrs, a)
				}
			}
			return addrs
		},
		OfClaim: func(claim string, f ipaddr.Family) int {
			if coming == nil {
				coming = map[part]int{}
				for uid, p := range e.assumed.pods {
					if p.claim == "" || uid == self || placed && p.pod.Node == "" {
						continue
					}
					for family, n := range p.fresh {
						coming[part{p.claim, family}] += n
					}
				}
			}
			return coming[part{claim, f}]
		},
		InNamespace: func(namespace, pool string) []netip.Addr {
			if charged == nil {
				charged = map[charge][]netip.Addr{}
				for uid, p := range e.assumed.pods {
					if uid == self || placed && p.pod.Node == "" {
						continue
					}
					for _, ns := range p.simulation.ChargedTo() {
						for pool, addrs := range p.byPool() {
							at := charge{ns, pool}
							charged[at] = append(charged[at], addrs...)
						}
					}
				}
			}
			return charged[charge{namespace, pool}]
		},
	}
}

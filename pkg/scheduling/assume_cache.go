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

// chosenLife is how long a pod that was let through is waited for: from the filter to the binding there are some
// milliseconds, or the time that its volumes take.
const chosenLife = 30 * time.Second

// maxChosen bounds the pods that were let through and are on no node yet. Of more the oldest are forgotten.
const maxChosen = 4096

// assumedPod is a pod that was let through to some nodes, or is on its node, and has no address yet. Its addresses are
// those that the allocator would choose for it now. Nothing keeps them from anybody who asks for an address; of the
// pods that are to be placed no other counts on them.
type assumedPod struct {
	pod        workload.Pod
	simulation *allocator.Simulation
	// known: the simulation has the constraints of the pod. For a pod that was found on its node they are read once;
	// hopeless: they were refused.
	known, hopeless bool
	// reading is closed when the constraints have been read; nil while nobody reads them. changes counts how often the
	// pod changed.
	reading chan struct{}
	changes int
	// addrs are what it would get on node; on any of the nodes that it was let through to while node is empty. Host is
	// the address of node by which it would, pools are those of addrs.
	addrs []netip.Addr
	pools []string
	node  string
	host  netip.Addr
	// claim is the one that it draws from, fresh counts by family the addresses that it takes which the claim does not
	// have: those of addrs on its node; before, when addrs are of many nodes, one unless the claim keeps some of them.
	claim string
	fresh map[ipaddr.Family]int
	// at is when it was let through; zero once it is on a node.
	at time.Time
}

// assumeCache has the assumed pods, by their UIDs.
type assumeCache struct {
	pods map[string]*assumedPod
	// owner maps an address to the UID of the pod that it is assumed for.
	owner map[netip.Addr]string
	// on has the addresses that are assumed for pods on their nodes, and for which, by the host and the pool.
	on map[place]map[netip.Addr]string
	// changed is closed at the next change.
	changed chan struct{}
}

// place is a host, and a pool of addresses that it is to have.
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

// assign gives an assumed pod other addresses, with the pool of each.
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

// chosen returns the pods that were let through and are on no node yet, the oldest first.
func (l *assumeCache) chosen() (uids []string) {
	for uid, p := range l.pods {
		if p.pod.Node == "" {
			uids = append(uids, uid)
		}
	}
	slices.SortFunc(uids, func(a, b string) int { return l.pods[a].at.Compare(l.pods[b].at) })
	return uids
}

// PodChanged takes a pod as the cache has it now.
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

// PodGone removes a pod that is no more.
func (e *Extender) PodGone(o *corev1.Pod) {
	uid := workload.FromObject(o).UID
	e.mu.Lock()
	defer e.mu.Unlock()
	e.assumed.drop(uid)
}

// Assumed counts, after it has forgotten what is over, the pods without an address that were placed, and those that
// were let through and are not placed yet.
func (e *Extender) Assumed() (placed, chosen int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tidy()
	chosen = len(e.assumed.chosen())
	return len(e.assumed.pods) - chosen, chosen
}

// tidy drops what is over: pods that have their address need none, and one that was let through long ago does not come.
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

// refresh brings the assumed pods up to date: an address that somebody else got in the meantime is replaced.
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

// readConstraints reads the constraints of the pods that were found on their nodes. It reads without the lock, those of
// one pod by one question at a time: another question waits for what it has to count with, and the watches of pods wait
// for nothing. What cannot be read is tried once for a question. The error is that of the context: nobody waits for the
// answer, and a pod must not be let through for it.
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

// nextUnread returns a pod on its node whose constraints are not known. The caller reads them and passes them to
// enterConstraints. Where others read those of all such pods, reading is closed when one of them is done.
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

// enterConstraints enters the constraints that were read for a pod, or the error.
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
		// It gets no address, until something about it changes; what could not be read is read again.
		p.hopeless = errors.As(err, &refusal) && refusal.Reason != ipam.ReasonUnavailable
	}
}

// gone reports whether an address that is assumed for a pod is another's by now.
func (e *Extender) gone(a netip.Addr, uid string) bool {
	l, ok := e.Index.Leases.Get(a)
	if _, own := l.From(func(l lease.Lease) bool { return l.PodUID == uid }); own {
		return false
	}
	return ok && l.State == lease.Active
}

// place assumes for a pod what it would get on the node that it is on.
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

// assign gives an assumed pod other addresses, which are all that it might get.
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

// byPool returns the addresses of an assumed pod by pool. A pod that is on no node yet takes one of a pool, whichever
// node it comes to.
func (p *assumedPod) byPool() map[string][]netip.Addr {
	all := map[string][]netip.Addr{}
	for i, a := range p.addrs {
		if at := p.pools[i]; p.node != "" || len(all[at]) == 0 {
			all[at] = append(all[at], a)
		}
	}
	return all
}

// promised returns what is assumed for other pods than that of a UID; where placed is set, for those on their nodes
// already. On a host only those count that are there: how many more a node may take is in the number that it
// publishes, from which the scheduler takes off all pods that it has placed.
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

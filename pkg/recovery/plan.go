package recovery

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// MaxWait is the maximum time for which a pool that lost leases waits for its pods to report their addresses. It
// allocates nothing meanwhile.
const MaxWait = 5 * time.Minute

// Input has the data for a plan.
type Input struct {
	// Now is the API server's time before the pods were read.
	Now time.Time
	// Index has the pools and the remaining leases.
	Index *index.Index
	Pods  iter.Seq[workload.Pod]
	// Objects are the addresses that objects say they have; nil for none.
	Objects iter.Seq[Object]
	// Hosts returns the addresses of a pod's Node; none while the Node is unknown.
	Hosts func(workload.Pod) []netip.Addr
	// Lost reports whether a pool has lost leases, by other evidence than the reports of one node. All reports of such
	// a pool's addresses are believed. nil means no pool.
	Lost func(pool string) bool
	// RebuiltAt is when somebody else rebuilt a pool. Pods that were created later are not awaited.
	RebuiltAt map[string]time.Time
}

// Object is an address that an object of the API server says it has: the IPAddress of a claim of Cluster API, or the
// status of a Service.
type Object struct {
	// Owner is that of the lease.
	Owner, Namespace string
	Addr             netip.Addr
}

// Plan has the leases to create from the reports of pods and objects.
type Plan struct {
	// Objects are the leases to create of objects. Who wrote them may write what it likes into them: they count only in
	// pools that lost leases, and go before the pods, as a machine does not tell of its address itself.
	Objects []lease.Lease
	// Create are the leases, sorted by address. Their versions are those of the objects that they replace, 0 for none.
	Create []lease.Lease
	// Doubtful are the leases of reports that are not believed: only the pod's status or an annotation says so, and the
	// pool would not give the pod that address. Each has a conflict.
	Doubtful []lease.Lease
	// Conflicts are the reported addresses that the pod cannot get.
	Conflicts []Conflict
	// Waiting has, for each pool, the pods on its hosts that may have an address and do not report it yet.
	Waiting map[string][]string
	// Reporters are the nodes of the pods that report the addresses in Create and Doubtful. Nodes are, for each pool,
	// the nodes with pods on hosts that draw from it.
	Reporters map[netip.Addr]string
	Nodes     map[string]map[string]bool
}

// Conflict is a reported address that the pod cannot get: somebody else has it, it is reserved, the pod has another one
// instead, or the report is not believed.
type Conflict struct {
	Addr  netip.Addr
	Pool  string
	Pod   string
	Cause string
}

// Make makes a plan. It has a lease for each address that a pool serves, that a running pod reports, and that nobody
// holds, unless the address's history shows that the pod released it, or that an operator took it from the pod. An
// address that a claim keeps stays with the claim. Of two pods that report an address, the one that started first gets
// it. A pod that is being deleted may have released its address: it is planned last, and only in pools that have lost
// other leases. A mere report is believed if the pool would give the pod that address, or has lost leases.
func Make(in Input) Plan {
	m := maker{
		Input: in, byHost: map[netip.Addr][]string{}, drawing: map[string][]string{},
		plan: Plan{
			Waiting: map[string][]string{}, Reporters: map[netip.Addr]string{}, Nodes: map[string]map[string]bool{},
		},
		by: map[netip.Addr]workload.Pod{}, pools: map[string]ipam.Pool{}, lost: map[string]bool{},
		objects: map[netip.Addr]string{},
	}
	for _, p := range in.Index.Pools.All() {
		if m.pools[p.Name] = p; p.Block { // its hosts are its parent's, which is rebuilt with all its blocks
			continue
		}
		for h := range p.Hosts {
			m.byHost[h] = append(m.byHost[h], p.Name)
		}
	}
	if in.Objects != nil {
		byOwner := func(a, b Object) int { return cmp.Compare(a.Owner, b.Owner) }
		for _, o := range slices.SortedStableFunc(in.Objects, byOwner) {
			m.addObject(o)
		}
	}
	for _, pod := range slices.SortedFunc(in.Pods, byClaimToAnAddress) {
		m.add(pod)
	}
	for _, l := range m.ending {
		if m.lost[m.Index.Pools.CountedAs(l.Pool)] {
			m.plan.Create = append(m.plan.Create, l)
		}
	}
	for _, leases := range [][]lease.Lease{m.plan.Objects, m.plan.Create, m.plan.Doubtful} {
		slices.SortStableFunc(leases, func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) })
	}
	slices.SortStableFunc(m.plan.Conflicts, func(a, b Conflict) int { return a.Addr.Compare(b.Addr) })
	for _, names := range m.plan.Waiting {
		slices.Sort(names)
	}
	return m.plan
}

// byClaimToAnAddress orders pods by their precedence if two report the same address.
func byClaimToAnAddress(a, b workload.Pod) int {
	if a.Deleting != b.Deleting {
		if b.Deleting {
			return -1
		}
		return 1
	}
	return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

type maker struct {
	Input
	plan   Plan
	pools  map[string]ipam.Pool
	byHost map[netip.Addr][]string
	// drawing are the pools that a node draws from.
	drawing map[string][]string
	by      map[netip.Addr]workload.Pod // who reports an address that nobody holds
	ending  []lease.Lease               // of pods that are being deleted
	lost    map[string]bool
	objects map[netip.Addr]string // the owners of the leases of objects
}

// add plans the leases of one pod.
func (m *maker) add(pod workload.Pod) {
	if pod.HostNetwork || pod.Ended || pod.Node == "" {
		return
	}
	for _, pool := range m.draws(pod) {
		if m.plan.Nodes[pool] == nil {
			m.plan.Nodes[pool] = map[string]bool{}
		}
		m.plan.Nodes[pool][pod.Node] = true
	}
	if len(pod.Addrs) == 0 {
		m.wait(pod)
		return
	}
	var mine []lease.Lease
	for i, a := range pod.Addrs {
		if pool, ok := m.Index.Pools.OwnerOf(a); ok {
			if l, ok := m.lease(pod, a, pod.IfNames[i], pool, mine); ok {
				mine = append(mine, l)
			}
		}
	}
	for _, l := range mine {
		if l.SetSize = m.setSize(l, mine); pod.Deleting {
			m.ending = append(m.ending, l)
			continue
		}
		m.lost[m.Index.Pools.CountedAs(l.Pool)] = true
		m.plan.Create = append(m.plan.Create, l)
	}
}

func (m *maker) wait(pod workload.Pod) {
	pools := m.draws(pod)
	if len(m.Hosts(pod)) == 0 {
		pools = m.poolsOf(pod.HostIPs) // waiting for one more is no harm
	}
	for _, name := range pools {
		if at, whole := m.RebuiltAt[name]; whole && pod.Created.After(at) {
			continue
		}
		m.plan.Waiting[name] = append(m.plan.Waiting[name], pod.Namespace+"/"+pod.Name)
	}
}

// draws returns the pools that the node of a pod draws from.
func (m *maker) draws(pod workload.Pod) []string {
	pools, known := m.drawing[pod.Node]
	if !known {
		pools = m.poolsOf(m.Hosts(pod))
		m.drawing[pod.Node] = pools
	}
	return pools
}

// poolsOf returns the pools from which any of some hosts draws.
func (m *maker) poolsOf(hosts []netip.Addr) (pools []string) {
	for _, h := range hosts {
		pools = append(pools, m.byHost[h]...)
	}
	pools = append(pools, m.Index.Pools.Covering(hosts)...)
	slices.Sort(pools)
	return slices.Compact(pools)
}

// lease returns the lease of a reported address; ok is false if none must be created.
func (m *maker) lease(
	pod workload.Pod, a netip.Addr, ifName, pool string, before []lease.Lease,
) (l lease.Lease, ok bool) {
	current, _ := m.Index.Leases.Get(a)
	who := pod.Namespace + "/" + pod.Name
	conflict := func(format string, args ...any) (lease.Lease, bool) {
		m.plan.Conflicts = append(m.plan.Conflicts, Conflict{a, pool, who, fmt.Sprintf(format, args...)})
		return lease.Lease{}, false
	}
	switch {
	case pod.Deleting && GaveUp(current, pod):
		return l, false // whoever has it now has it by right
	case current.State == lease.Reserved && current.Claim == "":
		return conflict("it is reserved")
	case current.State == lease.Active && !heldBy(current, pod):
		return conflict("%s holds it", current.Who())
	case current.State == lease.Active || GaveUp(current, pod):
		return l, false
	}
	if owner := m.objects[a]; owner != "" {
		return conflict("%s says that it has it, too", owner)
	}
	if _, lost := m.Index.Leases.Missing(a); lost {
		return l, false // the restorer knows more than the pod does
	}
	if cause := m.doubt(pod, a, pool, current); cause != "" { // whoever reports it, too, may be right
		m.plan.Doubtful = append(m.plan.Doubtful, m.made(current, pod, ifName, pool))
		m.plan.Reporters[a] = pod.Node
		return conflict("%s", cause)
	}
	switch other, twice := m.by[a]; {
	case twice && pod.Controller.IsMachine() && pod.Controller == other.Controller && pod.Namespace == other.Namespace:
		return conflict("its virtual machine migrates, and %s/%s of it has the address: rebuild again when that pod "+
			"has ended", other.Namespace, other.Name)
	case twice:
		return conflict("%s/%s reports it, too", other.Namespace, other.Name)
	}
	for _, held := range m.Index.Leases.ByAttachment(lease.Holder{
		Namespace: pod.Namespace, PodName: pod.Name, PodUID: pod.UID, IfName: ifName,
	}) {
		if ifName != "" && held.State == lease.Active && held.Addr.Is4() == a.Is4() {
			return conflict("the pod holds %s on %s", held.Addr, ifName)
		}
	}
	for _, b := range before {
		if b.IfName == ifName && b.Addr.Is4() == a.Is4() {
			ifName = "" // an interface takes one address of a family: whose this one is, is not known
		}
	}
	m.by[a], m.plan.Reporters[a] = pod, pod.Node
	return m.made(current, pod, ifName, pool), !current.Deleting
}

// made returns the lease of a pod on an address that nobody holds.
func (m *maker) made(current lease.Lease, pod workload.Pod, ifName, pool string) lease.Lease {
	p, l := m.pools[pool], current
	l.ExpiredTime = ""
	l.State, l.Params, l.Updated, l.HeldFinalizer = lease.Active, p.Params(), m.Now, true
	// An earlier request is refused, as its container may be gone, and so is a late release.
	l.Holder = lease.Holder{
		Host: m.host(pod, p), IfName: ifName, Namespace: pod.Namespace, PodName: pod.Name, PodUID: pod.UID,
		Termination: pod.LongTermination(), StartedAt: m.Now,
	}
	return l
}

// heldBy reports whether a lease in use belongs to a pod, or may belong to it because it names none. During a live
// migration two pods have the address.
func heldBy(l lease.Lease, pod workload.Pod) bool {
	_, ok := l.From(func(l lease.Lease) bool {
		return l.Owner == "" && (l.PodName == "" || l.PodUID == pod.UID || l.Who() == pod.Namespace+"/"+pod.Name)
	})
	return ok
}

// host returns the address by which the pool admits the pod's host, or else the host's first address. While the Node is
// unknown, the pod's status decides.
func (m *maker) host(pod workload.Pod, p ipam.Pool) (host netip.Addr) {
	hosts := m.Hosts(pod)
	if len(hosts) == 0 {
		hosts = pod.HostIPs
	}
	for i, h := range hosts {
		if p.Draws(h) {
			return h
		}
		if i == 0 {
			host = h
		}
	}
	return host
}

// setSize returns how many addresses of one network the interface of a lease has; 0 means one.
func (m *maker) setSize(l lease.Lease, mine []lease.Lease) (n int) {
	network := m.pools[l.Pool].Network
	if network == "" || l.IfName == "" {
		return 0
	}
	all := append(m.Index.Leases.ByAttachment(l.Holder), mine...)
	for _, o := range all {
		if o.IfName == l.IfName && m.pools[o.Pool].Network == network {
			n++
		}
	}
	if n == 1 {
		return 0
	}
	return n
}

// GaveUp reports whether a pod that reports an address had it and no longer has it: it released the address, for
// example when its sandbox failed, or an operator took it away.
func GaveUp(l lease.Lease, pod workload.Pod) bool {
	who := lease.PastHolder(pod.Namespace + "/" + pod.Name)
	for _, p := range l.History.Entries() {
		// Both times have whole seconds: a holder since that second is this pod, not an earlier one of its name.
		if p.Holder == who && (p.Until.After(pod.Started) || !p.Since.Before(pod.Started)) {
			return true
		}
	}
	return false
}

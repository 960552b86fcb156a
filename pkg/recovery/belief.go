package recovery

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// doubt returns why a report of an address that nobody holds is not believed; empty if it is. A kubelet writes the
// status of a pod, and users who may edit a pod write its annotations. By that alone they get only what the pool would
// give the pod. The store has stronger evidence: lost leases of the pool, the claim that keeps the address, and earlier
// holders.
func (m *maker) doubt(pod workload.Pod, a netip.Addr, pool string, current lease.Lease) string {
	who := pod.Namespace + "/" + pod.Name
	switch {
	case m.Lost != nil && m.Lost(m.Index.Pools.CountedAs(pool)), named(current, who):
		return ""
	case current.State == lease.Reserved && keptFor(current, pod):
		return ""
	case current.State == lease.Reserved:
		return fmt.Sprintf("claim %s keeps it", current.Claim)
	}
	hosts := m.Hosts(pod)
	at := slices.IndexFunc(hosts, m.pools[m.Index.Pools.CountedAs(pool)].Draws)
	switch {
	case len(hosts) == 0:
		return fmt.Sprintf("no address of its node %s is known", pod.Node)
	case at < 0:
		return fmt.Sprintf("the pool is not for its host %s", hosts[0])
	}
	l := lease.Lease{Addr: a, Params: lease.Params{Pool: pool}}
	l.Host, l.Namespace, l.PodName, l.PodUID = hosts[at], pod.Namespace, pod.Name, pod.UID
	if refusal := offer(m.Index, l, m.Now); refusal != nil {
		return "it would not be given to it: " + refusal.Message
	}
	return ""
}

// offer returns why the pool of a lease would not give its holder the address; nil if it would.
func offer(x *index.Index, l lease.Lease, now time.Time) *ipam.Refusal {
	_, refusal := x.Propose(ipam.PickRequest{
		Host: l.Host, Namespace: l.Namespace, PodUID: l.PodUID, Pools: []string{l.Pool}, Addrs: []netip.Addr{l.Addr},
		Who: "pod " + l.Who(), Holder: l.Who(),
	}, now)
	return refusal
}

// named reports whether a pod of that name had the address before.
func named(l lease.Lease, who string) bool {
	past := lease.PastHolder(who)
	return slices.ContainsFunc(l.History.Entries(), func(p lease.Past) bool { return p.Holder == past })
}

// keptFor reports whether a claim may keep an address for a pod: the claim is in the pod's namespace, and an address
// for one pod has the pod's name.
func keptFor(l lease.Lease, pod workload.Pod) bool {
	namespace, _, _ := strings.Cut(l.Claim, "/")
	return namespace == pod.Namespace && (l.PodPrimaryKey == "" || l.PodPrimaryKey == pod.Name)
}

package netservice

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Input has what a plan is made from.
type Input struct {
	IPs    []IP
	Claims []Claim
	// Index has the pools and leases of this release, Ours its claims by namespace/name.
	Index *index.Index
	Ours  map[string]*v1.BCSNetIPClaim
	Pods  []workload.Pod
	// Now is the API server's time before anything was read.
	Now time.Time
	// By is who imports, for the history of addresses.
	By string
}

// Plan lists what to make, in this order: claims before the leases that name them.
type Plan struct {
	Claims []v1.BCSNetIPClaim
	// Leases have the versions of the objects that they replace, 0 where there is none.
	Leases []lease.Lease
	// Already counts the addresses that are here as they should be.
	Already int
	// Conflicts are contradictions that somebody has to resolve.
	Conflicts []Remark
	// Left are the objects that are deliberately not taken over, or not entirely.
	Left []Remark
}

// Remark is about an object of the released program.
type Remark struct{ Object, Cause string }

// asidePrefix begins the reason of addresses that an import sets aside.
const asidePrefix = "bcs-netservice-controller: "

type maker struct {
	Input
	plan Plan
	// bound maps an address to the claims that are bound to it.
	bound map[netip.Addr][]string
	// unusable maps claims that are not taken over to the reason.
	unusable map[string]string
	// reporters maps an address to the running pods that report it; pods are all, by namespace/name.
	reporters map[netip.Addr][]workload.Pod
	pods      map[string]workload.Pod
}

// Make plans the claims and leases of the released program. Running pods count more than objects. An address whose
// objects contradict each other is set aside: nobody gets it until somebody has decided.
func Make(in Input) Plan {
	m := maker{
		Input: in, bound: map[netip.Addr][]string{}, unusable: map[string]string{},
		reporters: map[netip.Addr][]workload.Pod{}, pods: map[string]workload.Pod{},
	}
	for _, p := range in.Pods {
		m.pods[p.Namespace+"/"+p.Name] = p
		if p.Ended || p.HostNetwork {
			continue
		}
		for _, a := range p.Addrs {
			m.reporters[a] = append(m.reporters[a], p)
		}
	}
	m.planClaims()
	ips := map[netip.Addr]IP{}
	for _, ip := range in.IPs {
		a, err := ipaddr.ParseAddr(ip.Name)
		if err != nil {
			m.conflict("BCSNetIP "+ip.Name, "its name is no address")
			continue
		}
		ips[a] = ip
	}
	for a := range m.bound { // also those that have no object
		if _, known := ips[a]; !known {
			ips[a] = IP{}
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(ips), netip.Addr.Compare) {
		m.planAddress(a, ips[a])
	}
	return m.plan
}

func (m *maker) conflict(object, format string, args ...any) {
	m.plan.Conflicts = append(m.plan.Conflicts, Remark{object, fmt.Sprintf(format, args...)})
}

// planAddress plans one address.
func (m *maker) planAddress(a netip.Addr, ip IP) {
	key, cause := m.claimOf(ip, a)
	phase := ip.phase()
	if phase == phaseAvailable && key == "" && cause == "" {
		return
	}
	pool, served := m.Index.Pools.OwnerOf(a)
	if !served {
		m.conflict("BCSNetIP "+a.String(), "it is %s, and no pool has it", phase)
		return
	}
	p, _ := m.Index.Pools.Get(pool)
	now, _ := m.Index.Leases.Get(a)
	target := target{maker: m, ip: ip, now: now, params: p.Params(), claim: key}
	switch {
	case phase == phaseActive:
		h, why := m.holder(a, ip)
		if why != "" {
			m.conflict("BCSNetIP "+a.String(), "%s", why)
		}
		if cause != "" {
			m.conflict("BCSNetIP "+a.String(), "%s", cause)
		}
		if h.PodName == "" {
			target.aside(why)
			return
		}
		target.hold(h)
	case cause != "":
		m.conflict("BCSNetIP "+a.String(), "%s", cause)
		target.aside(cause)
	case key != "":
		target.keepForClaim()
	case phase == phaseReserved:
		target.aside("it is Reserved for no claim")
	default:
		m.conflict("BCSNetIP "+a.String(), "its phase %q is not known", phase)
		target.aside("its phase is not known")
	}
}

// holder returns who has an Active address. It has no pod name where that is not known; cause is why, or what is wrong
// with the object.
func (m *maker) holder(a netip.Addr, ip IP) (h lease.Holder, cause string) {
	s := ip.Status
	host, _ := ipaddr.ParseAddr(s.Host)
	h = lease.Holder{
		Host: host, ContainerID: s.ContainerID, IfName: lease.DefaultIfName, Namespace: s.PodNamespace,
		PodName:   s.PodName,
		StartedAt: m.since(ip),
	}
	pods := m.reporters[a]
	if i := slices.IndexFunc(pods, func(p workload.Pod) bool { return p.Namespace+"/"+p.Name == ip.pod() }); i >= 0 {
		h.PodUID = pods[i].UID
		if len(pods) > 1 {
			other := pods[(i+1)%len(pods)]
			cause = fmt.Sprintf("pods %s and %s/%s report it: it stays with the first, which the object names",
				ip.pod(), other.Namespace, other.Name)
		}
		return h, cause
	}
	switch pod, exists := m.pods[ip.pod()]; {
	case len(pods) == 1: // of the container nothing is known
		other := pods[0]
		h = lease.Holder{
			IfName: lease.DefaultIfName, Namespace: other.Namespace, PodName: other.Name, PodUID: other.UID,
			StartedAt: m.Now,
		}
		if len(other.HostIPs) > 0 {
			h.Host = other.HostIPs[0]
		}
		return h, fmt.Sprintf("it is that of %s, and %s reports it, which gets it", ip.pod(), h.Who())
	case len(pods) > 1:
		return lease.Holder{}, fmt.Sprintf("it is that of %s, and %d other pods report it", ip.pod(), len(pods))
	case s.PodName == "":
		return lease.Holder{}, "it is Active for no pod"
	case exists && !pod.Ended && !pod.Deleting && len(pod.Addrs) > 0:
		return lease.Holder{}, fmt.Sprintf("it is that of %s, which reports %s", ip.pod(), pod.Addrs[0])
	case exists && !pod.Ended && !m.since(ip).Before(pod.Created): // it reports nothing yet
		h.PodUID = pod.UID
	}
	return h, ""
}

// since returns when the released program last changed an address, or now where the object does not have it.
func (m *maker) since(ip IP) time.Time {
	if at := ip.updated(); !at.IsZero() && at.Before(m.Now) {
		return at
	}
	return m.Now
}

// asideByImport reports whether an import set an address aside, perhaps before somebody resolved what was
// contradictory.
func asideByImport(l lease.Lease) bool {
	last, ok := l.History.Last()
	return l.State == lease.Reserved && l.Claim == "" && ok && last.Verb == lease.VerbReserve &&
		strings.HasPrefix(last.Reason, asidePrefix)
}

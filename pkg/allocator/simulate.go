package allocator

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Simulation decides for a pod that asks for no address yet what Allocate would decide, host by host, without a read or
// a write. It is Propose for those who compare many hosts.
type Simulation struct {
	index *index.Index
	pod   attempt
}

// Feasibility has the addresses that a pod would get on a host.
type Feasibility struct {
	// Addrs are the addresses beside those that it holds.
	Addrs []netip.Addr
	// Kept means that one of them is kept for the pod, or held by its earlier pod.
	Kept bool
}

// NewSimulation makes a simulation of a pod with its constraints, for its first interface. That is the interface of the
// constraints, or else eth0. If all addresses of its claim are for other interfaces, it is the first of these. A pod
// without a UID holds nothing.
func NewSimulation(index *index.Index, pod workload.Pod, c Constraints) *Simulation {
	ifName := cmp.Or(c.IfName, interfaceOf(index.Leases.ClaimUsage(c.Claim)))
	return &Simulation{
		index: index,
		pod: attempt{
			Request:     Request{IfName: ifName, Namespace: pod.Namespace, PodName: pod.Name, PodUID: pod.UID},
			holder:      lease.Holder{IfName: ifName, Namespace: pod.Namespace, PodName: pod.Name, PodUID: pod.UID},
			constraints: c, families: c.Families,
		},
	}
}

// interfaceOf returns the interface for which the pods of a claim ask first: eth0 if any address of the claim is for
// it, else the first interface of the addresses.
func interfaceOf(parts index.ClaimUsage) string {
	name := lease.DefaultIfName
	for _, p := range parts {
		switch {
		case p.IfName == lease.DefaultIfName:
			return p.IfName
		case name == lease.DefaultIfName && p.IfName != "":
			name = p.IfName
		}
	}
	return name
}

// Request returns what the pod would ask for on a host.
func (s *Simulation) Request(host netip.Addr) Request {
	r := s.pod.Request
	r.Host = host
	return r
}

// on returns the attempt that the pod would make on a host.
func (s *Simulation) on(host netip.Addr) attempt {
	t := s.pod
	t.Host, t.holder.Host = host, host
	return t
}

// Promises are the addresses that others will get before the pod. Address reports whether an address is promised.
// OnHost returns the promised addresses of a pool on a host. OfClaim returns how many more addresses of a family the
// pods of a claim will get. InNamespace returns the promised addresses of a pool that count for a namespace. A nil
// function means none.
type Promises struct {
	Address     func(netip.Addr) bool
	OnHost      func(host netip.Addr, pool string) []netip.Addr
	OfClaim     func(claim string, f ipaddr.Family) int
	InNamespace func(namespace, pool string) []netip.Addr
}

// Claim returns the claim that the pod draws from; empty for none.
func (s *Simulation) Claim() string { return s.pod.constraints.Claim }

// ChargedTo returns the namespaces that the pod's addresses count for.
func (s *Simulation) ChargedTo() []string {
	return lease.Lease{State: lease.Active, Holder: s.pod.holder, Retention: s.pod.constraints.Retention}.ChargedTo()
}

// On returns what the pod would get on a host at a time, without what is promised to others. It includes the addresses
// of an earlier pod with the same key: On does not check whether that pod is gone.
func (s *Simulation) On(host netip.Addr, now time.Time, promised Promises) (o Feasibility, refusal *ipam.Refusal) {
	return s.feasible(host, now, promised, false)
}

// Near reports whether the pod would get an address on a host that is kept for it, however many the host may have.
func (s *Simulation) Near(host netip.Addr, now time.Time, promised Promises) bool {
	o, refusal := s.feasible(host, now, promised, true)
	return refusal == nil && o.Kept
}

// feasible does what On does. With anyHost it ignores how many addresses the host may have.
func (s *Simulation) feasible(
	host netip.Addr, now time.Time, promised Promises, anyHost bool,
) (o Feasibility, refusal *ipam.Refusal) {
	t := s.on(host)
	held := s.held()
	if c := t.constraints; len(held) == 0 && c.PodPrimaryKey != "" {
		w, mine := t.want(nil), map[string][]netip.Addr{}
		w.AnyHost, w.ExpectedIn = anyHost, promised.InNamespace
		w.Expected = func(pool string) []netip.Addr {
			if promised.OnHost == nil {
				return mine[pool]
			}
			return append(promised.OnHost(host, pool), mine[pool]...)
		}
		for _, l := range s.index.Leases.ByKey(c.Claim, c.PodPrimaryKey) {
			params, ok, refusal := inherits(s.index, w, t.holder, l)
			switch {
			case refusal != nil:
				return o, refusal
			case ok:
				o.Addrs, o.Kept = append(o.Addrs, l.Addr), true
				mine[params.Pool] = append(mine[params.Pool], l.Addr)
			}
		}
		if o.Kept {
			return o, nil
		}
	}
	w := t.want(held)
	w.Promised, w.AnyHost, w.ExpectedIn = promised.Address, anyHost, promised.InNamespace
	if promised.OnHost != nil {
		w.Expected = func(pool string) []netip.Addr { return promised.OnHost(host, pool) }
	}
	if promised.OfClaim != nil {
		w.Coming = func(f ipaddr.Family) int { return promised.OfClaim(s.Claim(), f) }
	}
	picks, refusal := s.index.Propose(w, now)
	for _, pick := range picks {
		o.Addrs = append(o.Addrs, pick.Current.Addr)
		o.Kept = o.Kept || pick.Current.State == lease.Reserved
	}
	return o, refusal
}

// held returns the addresses that the pod has.
func (s *Simulation) held() []lease.Lease {
	return slices.DeleteFunc(s.index.Leases.ByAttachment(s.pod.holder),
		func(l lease.Lease) bool { return l.State != lease.Active })
}

// Holds reports whether the pod has an address, on whichever interface.
func (s *Simulation) Holds() bool {
	return slices.ContainsFunc(s.index.Leases.ByAttachment(lease.Holder{
		Namespace: s.pod.holder.Namespace, PodName: s.pod.holder.PodName, PodUID: s.pod.holder.PodUID,
	}),
		func(l lease.Lease) bool { return l.State == lease.Active })
}

// Awaited reports whether the pod would get an address on some host that may have one more, which is kept for whichever
// pod of its claim comes next and is not promised to another.
func (s *Simulation) Awaited(now time.Time, promised Promises) bool {
	for _, pool := range s.index.Leases.RetainedIn(s.pod.constraints.Claim, promised.Address) {
		if host, ok := s.index.Pools.HostOf(pool); ok {
			if s.Near(host, now, promised) {
				return true
			}
		}
	}
	return false
}

// Earlier returns the hosts on which an earlier pod of its key has an address: there it takes no more than that one
// has.
func (s *Simulation) Earlier() (hosts []netip.Addr) {
	for _, l := range s.index.Leases.ByKey(s.pod.constraints.Claim, s.pod.constraints.PodPrimaryKey) {
		if l.State == lease.Active && l.Host.IsValid() {
			hosts = append(hosts, l.Host)
		}
	}
	return hosts
}

// Room returns for how many pods like it there are free addresses on a host.
func (s *Simulation) Room(host netip.Addr, now time.Time) uint64 {
	t := s.on(host)
	return s.index.RoomFor(t.want(nil), now)
}

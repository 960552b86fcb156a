package allocator

import (
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Prospect is a pod that asks for no address yet: what Allocate would decide for it, host by host, without a read or a
// write. It is Propose for those who compare many hosts.
type Prospect struct {
	index   *ipam.Index
	request Request
	holder  ipam.Holder
}

// Outlook is what a pod would get on a host.
type Outlook struct {
	// Addrs are the addresses beside those that it holds.
	Addrs []netip.Addr
	// Kept: one of them is kept for it, or its earlier pod has it.
	Kept bool
}

// NewProspect makes one of a pod with its constraints, for its first interface: eth0, unless its claim has addresses of others alone. A pod without a UID holds nothing.
func NewProspect(index *ipam.Index, pod workload.Pod, c Constraints) *Prospect {
	ifName := interfaceOf(index.ClaimUsage(c.Claim))
	return &Prospect{
		index:   index,
		request: Request{IfName: ifName, Namespace: pod.Namespace, PodName: pod.Name, PodUID: pod.UID, constraints: c},
		holder:  ipam.Holder{IfName: ifName, Namespace: pod.Namespace, PodName: pod.Name, PodUID: pod.UID},
	}
}

// interfaceOf is the interface that the pods of a claim ask for first, as far as its addresses tell.
func interfaceOf(parts ipam.ClaimUsage) string {
	name := ipam.DefaultIfName
	for _, p := range parts {
		switch {
		case p.IfName == ipam.DefaultIfName:
			return p.IfName
		case name == ipam.DefaultIfName && p.IfName != "":
			name = p.IfName
		}
	}
	return name
}

// Request is what the pod would ask for on a host.
func (p *Prospect) Request(host netip.Addr) Request {
	r := p.request
	r.Host = host
	return r
}

// Promises are what is as good as given to others: addresses, those of a pool on a host, how many of a family to pods
// of a claim beside those that it has, and those of a pool that count for a namespace. The zero value is none.
type Promises struct {
	Address     func(netip.Addr) bool
	OnHost      func(host netip.Addr, pool string) []netip.Addr
	OfClaim     func(claim string, is4 bool) int
	InNamespace func(namespace, pool string) []netip.Addr
}

// Claim is the claim that the pod draws from; empty for none.
func (p *Prospect) Claim() string { return p.request.constraints.Claim }

// ChargedTo are the namespaces that the pod's addresses count for.
func (p *Prospect) ChargedTo() []string {
	return ipam.Lease{State: ipam.Active, Holder: p.holder, Retention: p.request.constraints.Retention}.ChargedTo()
}

// On is what the pod would get on a host at a time, when what is promised to others is out of its reach. What an earlier pod of its key has it gets once that pod is no more, which nobody looks at here.
func (p *Prospect) On(host netip.Addr, now time.Time, promised Promises) (o Outlook, refusal *ipam.Refusal) {
	return p.on(host, now, promised, false)
}

// Near says whether the pod would get an address on a host that is kept for it, but for how many the host may have.
func (p *Prospect) Near(host netip.Addr, now time.Time, promised Promises) bool {
	o, refusal := p.on(host, now, promised, true)
	return refusal == nil && o.Kept
}

// on is On; anyHost says whether it does not matter how many addresses the host may have.
func (p *Prospect) on(host netip.Addr, now time.Time, promised Promises, anyHost bool) (o Outlook, refusal *ipam.Refusal) {
	r, h := p.Request(host), p.holder
	h.Host = host
	held := p.held()
	if t := r.constraints; len(held) == 0 && t.PodPrimaryKey != "" {
		w, mine := r.want(h, nil), map[string][]netip.Addr{}
		w.AnyHost, w.ExpectedIn = anyHost, promised.InNamespace
		w.Expected = func(pool string) []netip.Addr {
			if promised.OnHost == nil {
				return mine[pool]
			}
			return append(promised.OnHost(host, pool), mine[pool]...)
		}
		for _, l := range p.index.ByKey(t.Claim, t.PodPrimaryKey) {
			params, ok, refusal := inherits(p.index, w, h, l)
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
	w := r.want(h, held)
	w.Promised, w.AnyHost, w.ExpectedIn = promised.Address, anyHost, promised.InNamespace
	if promised.OnHost != nil {
		w.Expected = func(pool string) []netip.Addr { return promised.OnHost(host, pool) }
	}
	if promised.OfClaim != nil {
		w.Coming = func(is4 bool) int { return promised.OfClaim(p.Claim(), is4) }
	}
	picks, refusal := p.index.Propose(w, now)
	for _, pick := range picks {
		o.Addrs = append(o.Addrs, pick.Current.Addr)
		o.Kept = o.Kept || pick.Current.State == ipam.Reserved
	}
	return o, refusal
}

// held are the addresses that the pod has.
func (p *Prospect) held() []ipam.Lease {
	return slices.DeleteFunc(p.index.ByAttachment(p.holder), func(l ipam.Lease) bool { return l.State != ipam.Active })
}

// Holds says whether the pod has an address, on whichever interface.
func (p *Prospect) Holds() bool {
	return slices.ContainsFunc(p.index.ByAttachment(ipam.Holder{PodUID: p.holder.PodUID}), func(l ipam.Lease) bool { return l.State == ipam.Active })
}

// Awaited says whether on some host that may have one more the pod would get an address that is kept for whichever pod of
// its claim comes next, and not promised to another one.
func (p *Prospect) Awaited(now time.Time, promised Promises) bool {
	for _, pool := range p.index.RetainedIn(p.request.constraints.Claim, promised.Address) {
		if host, ok := p.index.HostOf(pool); ok {
			if p.Near(host, now, promised) {
				return true
			}
		}
	}
	return false
}

// Earlier are the hosts on which an earlier pod of its key has an address: there it takes no more than that one has.
func (p *Prospect) Earlier() (hosts []netip.Addr) {
	for _, l := range p.index.ByKey(p.request.constraints.Claim, p.request.constraints.PodPrimaryKey) {
		if l.State == ipam.Active && l.Host.IsValid() {
			hosts = append(hosts, l.Host)
		}
	}
	return hosts
}

// Room is for how many pods like it there are free addresses on a host.
func (p *Prospect) Room(host netip.Addr, now time.Time) uint64 {
	return p.index.RoomFor(p.Request(host).want(p.holder, nil), now)
}

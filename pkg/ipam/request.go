package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// PickRequest is what a request wants of the index.
type PickRequest struct {
	// Host that asks; invalid for a request by hand, and for one that is Ahead.
	Host      netip.Addr
	Namespace string
	// Owner in place of a pod.
	Owner string
	// Pools restrict the request to pools, which are tried in this order, and with them to their families; none for
	// any.
	Pools []string
	// Network restricts the request to the pools of one network; empty for any.
	Network string
	// Families says of which families addresses are taken.
	Families Families
	// Addrs are the addresses asked for, at most one per family.
	Addrs []netip.Addr
	// Have are the addresses that the attachment holds already, fewer than it takes together.
	Have []lease.Lease
	// Claim and PodPrimaryKey are those of the terms that the addresses are taken on, IfName is the interface that
	// they are for: addresses that are kept for them come first. Without a claim Claim and PodPrimaryKey are empty.
	Claim, PodPrimaryKey, IfName string
	// PodUID is that of the pod that asks, on its interface IfName; empty if it is not known.
	PodUID string
	// Keeps: the claim keeps the addresses when the pod ends.
	Keeps bool
	// Ahead: no pod asks yet. The claim is to have addresses that it does not keep already, of pools for any host.
	Ahead bool
	// Room is how many addresses of a family the claim may have in all; 0 for no bound, negative for none at all.
	Room int
	// Sets restrict the addresses: the request takes one of each set, or one of each family where a set has both.
	// None: one of each family of a network.
	Sets []*netipx.IPSet
	// Promised reports whether an address is assumed for a pod that has not asked for it yet; nil for none. A request
	// that is served does not ask: the first that comes gets it.
	Promised func(netip.Addr) bool
	// Expected returns the addresses of a pool that are assumed for others on the host which have not asked yet; nil
	// for none. A request that is served does not ask.
	Expected func(pool string) []netip.Addr
	// Coming counts the addresses of a family that are assumed for others of the claim beside those that it has; nil
	// for none. A request that is served does not ask.
	Coming func(f ipaddr.Family) int
	// ExpectedIn returns the addresses of a pool that are assumed for others and count for a namespace; nil for none. A
	// request that is served does not ask.
	ExpectedIn func(namespace, pool string) []netip.Addr
	// AnyHost: how many addresses of a pool its host may have does not matter.
	AnyHost bool
	// Key names the attachment. It also decides where in a pool the search begins.
	Key string
	// Who names the requester in messages, such as "pod a/b"; Holder is what histories call it, such as "a/b".
	Who, Holder string
	// try is the way in which pick tries to serve the request at present.
	try try
}

// byHand reports whether an operator names the pool for an owner that is on no host: which hosts and
// namespaces the pool is for does not matter then.
func (w PickRequest) byHand() bool { return w.Owner != "" && len(w.Pools) > 0 && !w.Host.IsValid() }

// names reports whether the request asks for a pool by its name or by that of its network.
func (w PickRequest) names(p Pool) bool {
	return slices.Contains(w.Pools, p.Name) || w.Network != "" && w.Network == p.Network
}

// nameOf returns which of the names that a request gives is that of a pool, or of the whole of which the pool is a
// block; -1 for none.
func (w PickRequest) nameOf(p Pool) int {
	return slices.IndexFunc(w.Pools, func(name string) bool { return name == p.Name || name == p.CountedAs() })
}

// need is one address that a request takes.
type need struct {
	slot   int
	family ipaddr.Family
	among  *netipx.IPSet // nil for any
}

// needs returns the addresses that the request takes, whether or not it has them; of a family that no pool has it
// takes none, unless its families say so. Those with the least choice come first.
func (w PickRequest) needs() (all []need) {
	all = w.eachNeed()
	return slices.DeleteFunc(all, func(n need) bool { return !w.takes(n.family) })
}

func (w PickRequest) eachNeed() (all []need) {
	if len(w.Sets) == 0 {
		return []need{{family: ipaddr.IPv4}, {family: ipaddr.IPv6}}
	}
	for slot, set := range w.Sets {
		for _, f := range ipaddr.Families() {
			if ipaddr.HasFamily(set, f) {
				all = append(all, need{slot, f, set})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b need) int { // sets may overlap
		return cmp.Compare(ipaddr.SizeOfSet(a.among), ipaddr.SizeOfSet(b.among))
	})
	return all
}

// needFor returns the need that an address of the request serves.
func (w PickRequest) needFor(l lease.Lease) need {
	n := need{slot: l.Slot, family: ipaddr.FamilyOf(l.Addr)}
	if l.Slot < len(w.Sets) {
		n.among = w.Sets[l.Slot]
	}
	return n
}

// promised reports whether an address is assumed for somebody else who has not asked for it yet.
func (w PickRequest) promised(a netip.Addr) bool { return w.Promised != nil && w.Promised(a) }

// slotOf returns the first of the request's sets that has an address.
func (w PickRequest) slotOf(a netip.Addr) int {
	return max(0, slices.IndexFunc(w.Sets, func(s *netipx.IPSet) bool { return s.Contains(a) }))
}

// admitted reports whether an address that is kept for a claim may go to the request.
func (w PickRequest) admitted(l lease.Lease) bool {
	terms := lease.Retention{Claim: w.Claim, PodPrimaryKey: w.PodPrimaryKey}
	return l.Admits(lease.Holder{IfName: w.IfName, Slot: w.slotOf(l.Addr)}, terms)
}

// ChargedTo returns the namespaces that an address which the request takes counts for. One that is ahead of all pods is
// for its claim alone.
func (w PickRequest) ChargedTo() lease.ChargedNamespaces {
	if w.Ahead {
		return lease.ChargedNamespaces{"", lease.ClaimNamespace(w.Claim)}
	}
	return lease.ChargedNamespaces{w.Namespace, lease.ClaimNamespace(w.Claim)}
}

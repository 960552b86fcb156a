package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Pick is an address chosen for a request. It is assumed for the request until Forget.
type Pick struct {
	Pool Pool
	// Current is the address as it is now; version 0 when it has no object.
	Current lease.Lease
	// Slot is which of the request's sets the address is from.
	Slot int
	// NewBlock: the pool is a block that does not exist yet. It has to be made before the address is given.
	NewBlock bool
}

// PickRequest asks the index for addresses.
type PickRequest struct {
	// Host is the host that asks; invalid for a request by hand, and for one that is Ahead.
	Host      netip.Addr
	Namespace string
	// Owner names who asks if it is not a pod.
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
	// Ahead: no pod asks yet. The claim is to have addresses that it does not keep already, of pools for any host. With
	// an Owner, that one asks, as an object of Namespace.
	Ahead bool
	// Room is the number of addresses of a family that the claim may have in all; 0 for no bound, negative for none at
	// all.
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
	// AnyHost reports whether MaxPerHost is ignored.
	AnyHost bool
	// Key names the attachment. It also decides where in a pool the search begins.
	Key string
	// Who names the requester in messages, such as "pod a/b"; Holder is what histories call it, such as "a/b".
	Who, Holder string
	// Try is the way in which pick tries to serve the request at present.
	Try Try
}

// ByHand reports whether an operator names the pool for an owner that is on no host: which hosts and
// namespaces the pool is for does not matter then.
func (w PickRequest) ByHand() bool {
	return w.Owner != "" && !w.Ahead && len(w.Pools) > 0 && !w.Host.IsValid()
}

// Names reports whether the request asks for a pool by its name or by that of its network.
func (w PickRequest) Names(p Pool) bool {
	return slices.Contains(w.Pools, p.Name) || w.Network != "" && w.Network == p.Network
}

// NameOf returns which of the names that a request gives is that of a pool, or of the whole of which the pool is a
// block; -1 for none.
func (w PickRequest) NameOf(p Pool) int {
	return slices.IndexFunc(w.Pools, func(name string) bool { return name == p.Name || name == p.CountedAs() })
}

// Need is one address that a request takes.
type Need struct {
	Slot   int
	Family ipaddr.Family
	Among  *netipx.IPSet // nil for any
}

// Needs returns the addresses that the request takes, whether or not it has them; of a family that no pool has it
// takes none, unless its families say so. Those with the least choice come first.
func (w PickRequest) Needs() (all []Need) {
	all = w.eachNeed()
	return slices.DeleteFunc(all, func(n Need) bool { return !w.takes(n.Family) })
}

func (w PickRequest) eachNeed() (all []Need) {
	if len(w.Sets) == 0 {
		return []Need{{Family: ipaddr.IPv4}, {Family: ipaddr.IPv6}}
	}
	for slot, set := range w.Sets {
		for _, f := range ipaddr.Families() {
			if ipaddr.HasFamily(set, f) {
				all = append(all, Need{slot, f, set})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Need) int { // sets may overlap
		return cmp.Compare(ipaddr.SizeOfSet(a.Among), ipaddr.SizeOfSet(b.Among))
	})
	return all
}

// NeedFor returns the need that an address of the request serves.
func (w PickRequest) NeedFor(l lease.Lease) Need {
	n := Need{Slot: l.Slot, Family: ipaddr.FamilyOf(l.Addr)}
	if l.Slot < len(w.Sets) {
		n.Among = w.Sets[l.Slot]
	}
	return n
}

// IsPromised reports whether an address is assumed for somebody else who has not asked for it yet.
func (w PickRequest) IsPromised(a netip.Addr) bool { return w.Promised != nil && w.Promised(a) }

// SlotOf returns the first of the request's sets that has an address.
func (w PickRequest) SlotOf(a netip.Addr) int {
	return max(0, slices.IndexFunc(w.Sets, func(s *netipx.IPSet) bool { return s.Contains(a) }))
}

// Admits reports whether an address that is kept for a claim may go to the request.
func (w PickRequest) Admits(l lease.Lease) bool {
	terms := lease.Retention{Claim: w.Claim, PodPrimaryKey: w.PodPrimaryKey}
	return l.Admits(lease.Holder{IfName: w.IfName, Slot: w.SlotOf(l.Addr)}, terms)
}

// ChargedTo returns the namespaces that an address which the request takes counts for. A request ahead of all pods
// counts only for its claim.
func (w PickRequest) ChargedTo() lease.ChargedNamespaces {
	if w.Ahead && w.Owner == "" {
		return lease.ChargedNamespaces{"", lease.ClaimNamespace(w.Claim)}
	}
	return lease.ChargedNamespaces{w.Namespace, lease.ClaimNamespace(w.Claim)}
}

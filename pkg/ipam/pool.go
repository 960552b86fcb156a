package ipam

import (
	"net/netip"
	"time"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Pool is a pool as the index knows it. It is not changed once it was given to SetPool.
type Pool struct {
	Name    string
	Created time.Time
	// Generation is that of the spec which the rest was read from.
	Generation int64
	Plan       Plan
	// Problem says why the pool's spec cannot be used; such a pool serves nothing. BadParent: it is a child, and what
	// is wrong is how it fits its parent and the parent's other children.
	Problem   string
	BadParent bool
	// Parent names the pool that this one is carved from; empty for a pool of its own.
	Parent string
	// Carved are the addresses that the parent has handed over to this group; nil if the pool is not a group. Withheld
	// are the group's other addresses: the parent no longer allocates them, and the group does not allocate them yet.
	// Carving reports whether Withheld has all addresses of the group. Withheld and Carving, like ByParent, follow from
	// the parent (Arrange). The addresses of a split pool belong to its blocks: its Carved is nil, and its Carving is
	// true while it gives no blocks (SplitLate).
	Carved, Withheld *netipx.IPSet
	Carving          bool
	// ByParent is why the parent keeps its child from allocating addresses: it is Cordoned, or Terminating.
	ByParent explain.StopCause
	// Hosts, the hosts in HostSubnets, and those whose nodes HostSelector matches may draw from the pool.
	Hosts        map[netip.Addr]struct{}
	HostSubnets  Networks
	HostSelector Selector
	// Selected are the hosts whose nodes HostSelector matches at present, in order. Whoever has the nodes sets them:
	// the index, or WithNodes.
	Selected []netip.Addr
	// Namespaces, and those whose labels NamespaceSelector matches, are the ones that the pool is bound to.
	Namespaces        map[string]struct{}
	NamespaceSelector Selector
	// NotDefault leaves the pool out of the default chain: while it is bound to no namespace, it serves only who names
	// it.
	NotDefault bool
	Network    string
	Priority   int32
	// MaxPerHost is the number of addresses of the pool that one host may have at a time; 0 for no bound.
	MaxPerHost int
	// MaxPerNamespace is the number of addresses of the pool that may count for one namespace, if Quotas do not name
	// it; 0 for no bound.
	MaxPerNamespace int
	Quotas          map[string]int
	// Cooldown is the time for which an address that was given up rests before the pool allocates it again.
	Cooldown time.Duration
	// Order is which free address a request gets; empty for the parent's, and that of Spread for a pool without one.
	Order Order
	// BlockSize is the prefix length of the blocks that the pool is split into; 0 for a pool that is not. With
	// AutoAssign a namespace is given a block by itself. After ReclaimAfter a block that nothing is in goes back
	// although its namespace lives, unless it is the last one; 0 for never.
	BlockSize    int
	AutoAssign   bool
	ReclaimAfter time.Duration
	// Block: the pool is a block of its parent. It has its range and its namespace itself, all else is the parent's.
	Block bool
	// Cordoned and Terminating pools allocate nothing.
	Cordoned, Terminating bool
	Link                  lease.Link
}

// Order is which free address of a pool a request gets.
type Order string

// Values of Order.
const (
	// Spread: the first free address at or after a place that follows from the attachment.
	Spread Order = "Spread"
	// Lowest: the lowest free address.
	Lowest Order = "Lowest"
)

// Start returns the number at or after which a pool looks for a free address. The numbers of a pool are in the order of
// its addresses.
func (p Pool) Start(spread uint64) uint64 {
	if p.Order == Lowest {
		return 0
	}
	return spread
}

// Params returns what an address of the pool takes from it.
func (p Pool) Params() lease.Params {
	return lease.Params{Pool: p.Name, Bits: p.Plan.Subnet.Bits(), Gateway: p.Plan.Gateway}
}

// Settings returns what an answer says of an address of the pool beside the address itself, unless a host or an
// annotation names another gateway.
func (p Pool) Settings() lease.Settings {
	return lease.Settings{Gateway: p.Plan.Gateway, Link: p.Link}
}

// Bound reports whether the pool serves only certain namespaces, whether or not they exist at present.
func (p Pool) Bound() bool { return len(p.Namespaces) > 0 || p.NamespaceSelector != nil }

// InDefaultChain reports whether the pool serves every namespace without its own pools.
func (p Pool) InDefaultChain() bool { return !p.Bound() && !p.NotDefault }

// Valid reports whether the pool's spec can be used.
func (p Pool) Valid() bool { return p.Problem == "" }

// Serves reports whether the pool allocates addresses at all.
func (p Pool) Serves() bool {
	return p.Valid() && !p.Cordoned && !p.Terminating && !p.Carving && p.ByParent == explain.Serves
}

// Usable returns the addresses that the pool may allocate, taken or not; none if its spec cannot be used.
func (p Pool) Usable() *netipx.IPSet {
	if p.Plan.Usable == nil || !p.Valid() {
		return &netipx.IPSet{}
	}
	return p.Plan.Usable
}

// Lacks reports whether an address is outside what the pool has now, so that one in use drains; false for a pool whose
// spec cannot be used.
func (p Pool) Lacks(a netip.Addr) bool {
	return p.Valid() && p.Plan.Usable != nil && !p.Plan.Usable.Contains(a)
}

// Family returns the family of the addresses of the pool.
func (p Pool) Family() ipaddr.Family { return ipaddr.FamilyOf(p.Plan.Subnet.Addr()) }

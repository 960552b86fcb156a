package ipam

import (
	"net/netip"
	"time"

	"go4.org/netipx"

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
	// Problem says why the pool's spec cannot be used; such a pool serves nothing.
	Problem string
	// Hosts and the hosts in HostSubnets may draw from the pool.
	Hosts       map[netip.Addr]struct{}
	HostSubnets Networks
	Namespaces  map[string]struct{}
	Network     string
	Priority    int32
	// MaxPerHost is how many addresses of the pool one host may have at a time; 0 for no bound.
	MaxPerHost int
	// MaxPerNamespace is how many addresses of the pool may count for one namespace, where Quotas say nothing of it; 0 for
	// no bound.
	MaxPerNamespace int
	Quotas          map[string]int
	// Cooldown is how long an address that was given up rests before the pool hands it out again.
	Cooldown time.Duration
	// Cordoned and Terminating pools hand out nothing.
	Cordoned, Terminating bool
	Link                  Link
}

// Link has what the CNI plugin gets of a pool beside the address.
type Link struct {
	VLAN, MTU int
	Routes    []Route
	DNS       *DNS
}

// Route for the pod; GW is invalid where the gateway of the pool is meant.
type Route struct {
	Dst netip.Prefix
	GW  netip.Addr
}

// DNS is the resolver configuration of the CNI specification.
type DNS struct {
	Nameservers []string
	Domain      string
	Search      []string
	Options     []string
}

// Params returns what an address of the pool takes from it.
func (p Pool) Params() lease.Params {
	return lease.Params{Pool: p.Name, Bits: p.Plan.Subnet.Bits(), Gateway: p.Plan.Gateway}
}

// Valid reports whether the pool's spec can be used.
func (p Pool) Valid() bool { return p.Problem == "" }

// Serves reports whether the pool hands out addresses at all.
func (p Pool) Serves() bool { return p.Valid() && !p.Cordoned && !p.Terminating }

// Usable returns the addresses that the pool may hand out, taken or not; none where its spec cannot be used.
func (p Pool) Usable() *netipx.IPSet {
	if p.Plan.Usable == nil || !p.Valid() {
		return &netipx.IPSet{}
	}
	return p.Plan.Usable
}

// Family returns the family of the addresses of the pool.
func (p Pool) Family() ipaddr.Family { return ipaddr.FamilyOf(p.Plan.Subnet.Addr()) }

package resource

import (
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// HeldAddr is what is counted of an address in use: there may be many.
type HeldAddr struct {
	Host  netip.Addr
	pool  string
	Pod   types.NamespacedName // empty name for an owner that is no pod
	since time.Time
	// Second is the second attachment of the same address, nil for nearly all.
	Second *HeldAddr
}

// HeldAddrOf returns what a lease adds to the usage of its holder.
func HeldAddrOf(l lease.Lease) HeldAddr {
	h := HeldAddr{
		Host: l.Host, pool: l.Pool, Pod: types.NamespacedName{Namespace: l.Namespace, Name: l.PodName},
		since: l.Updated,
	}
	if l.Other != nil {
		other := l.Turned()
		other.Other = nil
		second := HeldAddrOf(other)
		h.Second = &second
	}
	return h
}

// AddHosts counts an address for the hosts that have it: one, or two while a virtual machine migrates.
func AddHosts(to LeaseUsage[netip.Addr], u HeldAddr) {
	for at := &u; at != nil; at = at.Second {
		if at.Host.IsValid() {
			to.Add(at.Host, *at)
		}
	}
}

// ReadHeldAddr reads the same from an object as the API server has it.
func ReadHeldAddr(u *unstructured.Unstructured) (HeldAddr, error) {
	l, err := ReadLease(u)
	return HeldAddrOf(l), err
}

// Stake is what one holder of addresses has: a host, or a namespace.
type Stake struct {
	Addresses int
	Pods      map[types.NamespacedName]bool
	Pools     map[string]int // addresses
	// Since is when each address was taken.
	Since []time.Time
}

// LeaseUsage are the addresses in use by who has them.
type LeaseUsage[K comparable] map[K]*Stake

// Add counts an address for a holder.
func (h LeaseUsage[K]) Add(who K, u HeldAddr) {
	if h[who] == nil {
		h[who] = &Stake{Pods: map[types.NamespacedName]bool{}, Pools: map[string]int{}}
	}
	of := h[who]
	of.Addresses++
	of.Pools[u.pool]++
	of.Since = append(of.Since, u.since)
	if u.Pod.Name != "" {
		of.Pods[u.Pod] = true
	}
}

// PerHost describes where addresses are: "2 on 10.0.0.11, 1 on 10.0.0.12".
func PerHost(held []lease.Lease) string {
	by := map[netip.Addr]int{}
	var hosts []netip.Addr
	for _, l := range held {
		if by[l.Host]++; by[l.Host] == 1 {
			hosts = append(hosts, l.Host)
		}
	}
	SortAddrs(hosts)
	var parts []string
	for _, h := range hosts {
		where := "no host"
		if h.IsValid() {
			where = h.String()
		}
		parts = append(parts, fmt.Sprintf("%d on %s", by[h], where))
	}
	return humanize.List(parts)
}

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

// HeldAddr is the part of a lease that is counted. It is small, because there may be many.
type HeldAddr struct {
	Host  netip.Addr
	pool  string
	Pod   types.NamespacedName // name is empty for an owner
	since time.Time
	// Second is the second attachment of the address; mostly nil.
	Second *HeldAddr
}

// HeldAddrOf returns the counted part of a lease.
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

// AddHosts counts an address for its hosts: one, or two during a live migration.
func AddHosts(to LeaseUsage[netip.Addr], u HeldAddr) {
	for at := &u; at != nil; at = at.Second {
		if at.Host.IsValid() {
			to.Add(at.Host, *at)
		}
	}
}

// ReadHeldAddr decodes the counted part of a lease.
func ReadHeldAddr(u *unstructured.Unstructured) (HeldAddr, error) {
	l, err := ReadLease(u)
	return HeldAddrOf(l), err
}

// Stake counts the addresses of one host or namespace.
type Stake struct {
	Addresses int
	Pods      map[types.NamespacedName]bool
	Pools     map[string]int // addresses
	// Since is the time of each allocation.
	Since []time.Time
}

// LeaseUsage counts addresses by holder.
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

// PerHost counts addresses by host: "2 on 10.0.0.11, 1 on 10.0.0.12".
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

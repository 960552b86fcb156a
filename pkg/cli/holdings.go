package cli

import (
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// heldAddr is what is counted of an address in use: there may be many.
type heldAddr struct {
	host  netip.Addr
	pool  string
	pod   types.NamespacedName // empty name for an owner that is no pod
	since time.Time
}

func heldAddrOf(l ipam.Lease) heldAddr {
	return heldAddr{host: l.Host, pool: l.Pool, pod: types.NamespacedName{Namespace: l.Namespace, Name: l.PodName}, since: l.Updated}
}

func readHeldAddr(u *unstructured.Unstructured) (heldAddr, error) {
	l, err := readLease(u)
	return heldAddrOf(l), err
}

// stake is what one holder of addresses has: a host, or a namespace.
type stake struct {
	addresses int
	pods      map[types.NamespacedName]bool
	pools     map[string]int // addresses
	// since is when each address was taken.
	since []time.Time
}

// leaseUsage are the addresses in use by who has them.
type leaseUsage[K comparable] map[K]*stake

func (h leaseUsage[K]) add(who K, u heldAddr) {
	if h[who] == nil {
		h[who] = &stake{pods: map[types.NamespacedName]bool{}, pools: map[string]int{}}
	}
	of := h[who]
	of.addresses++
	of.pools[u.pool]++
	of.since = append(of.since, u.since)
	if u.pod.Name != "" {
		of.pods[u.pod] = true
	}
}

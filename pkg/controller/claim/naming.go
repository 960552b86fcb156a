package claim

import (
	"net/netip"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

const (
	// bucketBits is the number of low bits of an address that its bucket ignores: each bucket has 64 addresses.
	bucketBits = 6
	// mostBuckets bounds the buckets of a range. A larger range is compared with every claim.
	mostBuckets = 64
)

// naming records which claims name which addresses. It finds the claims that may name one of some addresses without
// scanning all: ten thousand machines may each name theirs.
type naming struct {
	named   map[string]*netipx.IPSet
	buckets map[netip.Prefix]sets.Set[string]
	// wide are the claims with a range that is too large for buckets.
	wide sets.Set[string]
}

func newNaming() naming {
	return naming{
		named: map[string]*netipx.IPSet{}, buckets: map[netip.Prefix]sets.Set[string]{}, wide: sets.Set[string]{},
	}
}

// set records the addresses that a claim names, nil for any, and returns those that it named before.
func (n *naming) set(name string, now *netipx.IPSet) (before *netipx.IPSet) {
	before = n.named[name]
	if before == now {
		return before
	}
	if before != nil {
		delete(n.named, name)
		n.wide.Delete(name)
		eachBucket(before, func(at netip.Prefix) {
			if in := n.buckets[at].Delete(name); len(in) == 0 {
				delete(n.buckets, at)
			}
		})
	}
	if now == nil {
		return before
	}
	n.named[name] = now
	if !eachBucket(now, func(at netip.Prefix) {
		if n.buckets[at] == nil {
			n.buckets[at] = sets.Set[string]{}
		}
		n.buckets[at].Insert(name)
	}) {
		n.wide.Insert(name)
	}
	return before
}

// sharing returns the other claims that name one of some addresses, with all addresses that they name.
func (n *naming) sharing(name string, addrs *netipx.IPSet) map[string]*netipx.IPSet {
	out := map[string]*netipx.IPSet{}
	if addrs == nil {
		return out
	}
	look := func(other string) {
		if set := n.named[other]; other != name && out[other] == nil && addrs.Overlaps(set) {
			out[other] = set
		}
	}
	narrow := eachBucket(addrs, func(at netip.Prefix) {
		for other := range n.buckets[at] {
			look(other)
		}
	})
	if !narrow {
		for other := range n.named {
			look(other)
		}
		return out
	}
	for other := range n.wide {
		look(other)
	}
	return out
}

// eachBucket calls fn for the buckets of addresses, except those of ranges that are too large. narrow is false if there
// is such a range.
func eachBucket(set *netipx.IPSet, fn func(netip.Prefix)) (narrow bool) {
	narrow = true
	for _, r := range set.Ranges() {
		if ipaddr.SizeOfSet(ipaddr.SetOf(r)) > mostBuckets<<bucketBits {
			narrow = false
			continue
		}
		at := netip.PrefixFrom(r.From(), r.From().BitLen()-bucketBits).Masked()
		for {
			fn(at)
			last := netipx.PrefixLastIP(at)
			if last.Compare(r.To()) >= 0 {
				break
			}
			at = netip.PrefixFrom(last.Next(), at.Bits())
		}
	}
	return narrow
}

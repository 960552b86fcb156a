package ipaddr

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// SetOf returns the addresses of some ranges.
func SetOf(ranges ...netipx.IPRange) *netipx.IPSet {
	if len(ranges) == 0 {
		return &netipx.IPSet{}
	}
	var b netipx.IPSetBuilder
	for _, r := range ranges {
		b.AddRange(r)
	}
	return built(&b)
}

// SetOfAddrs returns the set of some addresses.
func SetOfAddrs(addrs ...netip.Addr) *netipx.IPSet {
	if len(addrs) == 0 {
		return &netipx.IPSet{}
	}
	var b netipx.IPSetBuilder
	for _, a := range addrs {
		b.Add(a)
	}
	return built(&b)
}

// Intersect returns the addresses that both sets have.
func Intersect(a, b *netipx.IPSet) *netipx.IPSet {
	switch {
	case a == nil || b == nil:
	case a.Equal(b): // as for most of the thousands of pools that a start reads
		return a
	case !Meet(a.Ranges(), b.Ranges()):
		return &netipx.IPSet{}
	}
	var s netipx.IPSetBuilder
	s.AddSet(a)
	s.Intersect(b)
	return built(&s)
}

// Subtract returns the addresses of a set that none of the others has.
func Subtract(set *netipx.IPSet, less ...*netipx.IPSet) *netipx.IPSet {
	if set != nil {
		ranges := set.Ranges()
		if !slices.ContainsFunc(less, func(l *netipx.IPSet) bool { return l != nil && Meet(ranges, l.Ranges()) }) {
			return set
		}
	}
	var b netipx.IPSetBuilder
	b.AddSet(set)
	for _, l := range less {
		b.RemoveSet(l)
	}
	return built(&b)
}

// built returns the set of a builder. An invalid range, of which sets have none and ParseRange makes none, counts for
// nothing; the others stay.
func built(b *netipx.IPSetBuilder) *netipx.IPSet {
	set, _ := b.IPSet()
	return set
}

// Meet reports whether two sets, as ranges in order, share an address.
func Meet(a, b []netipx.IPRange) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].To().Less(b[0].From()):
			a = a[1:]
		case b[0].To().Less(a[0].From()):
			b = b[1:]
		default:
			return true
		}
	}
	return false
}

// FirstOverlap finds two of the given ranges that share an address, the lowest such pair.
func FirstOverlap(ranges []netipx.IPRange) (a, b netipx.IPRange, found bool) {
	sorted := slices.Clone(ranges)
	slices.SortFunc(sorted, func(a, b netipx.IPRange) int {
		return cmp.Or(a.From().Compare(b.From()), a.To().Compare(b.To()))
	})
	for i := 1; i < len(sorted); i++ {
		if sorted[i-1].To().Compare(sorted[i].From()) >= 0 {
			return sorted[i-1], sorted[i], true
		}
	}
	return a, b, false
}

// All returns the addresses of a set in order.
func All(set *netipx.IPSet) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, r := range set.Ranges() {
			for a := r.From(); r.Contains(a); a = a.Next() {
				if !yield(a) {
					return
				}
			}
		}
	}
}

package ipaddr

import (
	"net/netip"

	"go4.org/netipx"
)

// Family is IPv4 or IPv6.
type Family uint8

// Families. They are numbered from 0, so that an array can have a place for each.
const (
	IPv4 Family = iota
	IPv6
)

// Families returns both, IPv4 first.
func Families() [2]Family { return [2]Family{IPv4, IPv6} }

// FamilyOf returns the family of an address. IPv4-mapped IPv6 addresses do not come up: ParseAddr refuses them.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// String returns "IPv4" or "IPv6".
func (f Family) String() string {
	if f == IPv4 {
		return "IPv4"
	}
	return "IPv6"
}

// OfFamily returns the part of a set that is of one family.
func OfFamily(s *netipx.IPSet, f Family) *netipx.IPSet {
	var b netipx.IPSetBuilder
	for _, r := range s.Ranges() {
		if FamilyOf(r.From()) == f {
			b.AddRange(r)
		}
	}
	return built(&b)
}

// HasFamily reports whether a set has an address of a family.
func HasFamily(s *netipx.IPSet, f Family) bool {
	for _, r := range s.Ranges() {
		if FamilyOf(r.From()) == f {
			return true
		}
	}
	return false
}

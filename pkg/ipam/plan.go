package ipam

import (
	"errors"
	"fmt"
	"math"
	"net/netip"

	"go4.org/netipx"
)

// PlanSpec is what a pool's spec says about its addresses.
type PlanSpec struct {
	Net       string
	Mask      int
	Gateway   string
	Available []string
	Exclude   []string
}

// Plan is the addresses of a pool.
type Plan struct {
	Subnet  netip.Prefix
	Gateway netip.Addr
	// Usable addresses may be handed out: what is available and not excluded, less the network,
	// broadcast and gateway addresses.
	Usable *netipx.IPSet
	// Ranged is the part of Usable that was written as ranges and CIDRs.
	Ranged *netipx.IPSet
	// Notes are oddities that do no harm, such as entries that overlap.
	Notes []string
}

// NewPlan checks a pool's spec and computes its addresses. The error names every entry that is
// wrong, the first ten of them in words; a plan comes only without an error.
func NewPlan(s PlanSpec) (Plan, error) {
	var p Plan
	net, err := ParseAddr(s.Net)
	if err != nil {
		return p, fmt.Errorf("net: %w", err)
	}
	if s.Mask < 1 || s.Mask > net.BitLen() {
		return p, fmt.Errorf("mask %d is not between 1 and %d", s.Mask, net.BitLen())
	}
	p.Subnet = netip.PrefixFrom(net, s.Mask)
	if p.Subnet != p.Subnet.Masked() {
		return p, fmt.Errorf("net %s has host bits set: the subnet is %s", net, p.Subnet.Masked())
	}
	if p.Gateway, err = ParseAddr(s.Gateway); err != nil {
		return p, fmt.Errorf("gateway: %w", err)
	}
	if !p.Subnet.Contains(p.Gateway) {
		return p, fmt.Errorf("gateway %s is not in subnet %s", p.Gateway, p.Subnet)
	}
	available, ranged, notes, err := readEntries("availableIPs", s.Available, p.Subnet)
	excluded, _, _, err2 := readEntries("excludeIPs", s.Exclude, p.Subnet)
	if err := errors.Join(err, err2); err != nil {
		return p, err
	}
	p.Notes = notes
	if p.Usable, err = subtract(available, excluded, p.unusable()); err != nil {
		return p, err
	}
	if p.Ranged, err = intersect(ranged, p.Usable); err != nil {
		return p, err
	}
	if SizeOfSet(p.Usable) == math.MaxUint64 && len(p.Usable.Ranges()) > 1 {
		return p, fmt.Errorf("availableIPs hold more addresses than a /64, the largest that a pool can hold")
	}
	return p, nil
}

// unusable are the addresses of the subnet that nobody gets: the network, broadcast and gateway
// addresses. A subnet of one or two addresses has neither network nor broadcast address (RFC 3021,
// RFC 6164); IPv6 has no broadcast.
func (p Plan) unusable() *netipx.IPSet {
	var b netipx.IPSetBuilder
	b.Add(p.Gateway)
	if p.Subnet.Bits() < p.Subnet.Addr().BitLen()-1 {
		b.Add(p.Subnet.Addr())
		if p.Subnet.Addr().Is4() {
			b.Add(netipx.PrefixLastIP(p.Subnet))
		}
	}
	set, _ := b.IPSet() // single addresses: cannot fail
	return set
}

// maxReported is how many wrong entries an error spells out.
const maxReported = 10

func readEntries(field string, entries []string, subnet netip.Prefix) (all, ranged *netipx.IPSet, notes []string, err error) {
	var a, r netipx.IPSetBuilder
	var errs []error
	parsed := make([]netipx.IPRange, 0, len(entries))
	for i, entry := range entries {
		got, err := ParseRange(entry)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s[%d]: %w", field, i, err))
			continue
		case got.From().Is4() != subnet.Addr().Is4():
			errs = append(errs, fmt.Errorf("%s[%d]: %q is not of the family of subnet %s", field, i, entry, subnet))
			continue
		case !subnet.Contains(got.From()) || !subnet.Contains(got.To()):
			errs = append(errs, fmt.Errorf("%s[%d]: %q is not in subnet %s", field, i, entry, subnet))
			continue
		}
		parsed = append(parsed, got)
		a.AddRange(got)
		if got.From() != got.To() {
			r.AddRange(got)
		}
	}
	if n := len(errs); n > maxReported {
		errs = append(errs[:maxReported], fmt.Errorf("%s: %d more entries are wrong", field, n-maxReported))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, nil, err
	}
	if all, err = a.IPSet(); err != nil {
		return nil, nil, nil, err
	}
	if ranged, err = r.IPSet(); err != nil {
		return nil, nil, nil, err
	}
	if a, b, found := FirstOverlap(parsed); found {
		notes = append(notes, fmt.Sprintf("%s: %s and %s overlap; shared addresses count once", field, FormatRange(a), FormatRange(b)))
	}
	return all, ranged, notes, nil
}

func subtract(set *netipx.IPSet, less ...*netipx.IPSet) (*netipx.IPSet, error) {
	var b netipx.IPSetBuilder
	b.AddSet(set)
	for _, l := range less {
		b.RemoveSet(l)
	}
	return b.IPSet()
}

func intersect(a, b *netipx.IPSet) (*netipx.IPSet, error) {
	var s netipx.IPSetBuilder
	s.AddSet(a)
	s.Intersect(b)
	return s.IPSet()
}

package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// PlanSpec has the fields of a pool's spec that concern its addresses.
type PlanSpec struct {
	Net  string
	Mask int
	// Gateway is empty for a network without a router.
	Gateway   string
	Available []string
	Exclude   []string
}

// Plan is the addresses of a pool.
type Plan struct {
	Subnet netip.Prefix
	// Gateway is invalid for a network without a router.
	Gateway netip.Addr
	// CIDR is the one entry of the available addresses, where they are a single CIDR; invalid otherwise.
	CIDR netip.Prefix
	// Usable addresses may be allocated: what is available and not excluded, less the network, broadcast and gateway
	// addresses.
	Usable *netipx.IPSet
	// Single and Ranged are the parts of Usable that were written as single addresses, and as ranges
	// and CIDRs.
	Single, Ranged *netipx.IPSet
	// Excluded are the addresses of excludeIPs.
	Excluded *netipx.IPSet
	// Notes are oddities that do no harm, such as entries that overlap.
	Notes []string
}

// NewPlan checks a pool's spec and computes its addresses. The error spells out the first ten wrong
// entries of each list and counts the others; a plan comes only without an error.
func NewPlan(s PlanSpec) (Plan, error) {
	p, err := newSubnet(s)
	if err != nil {
		return Plan{}, err
	}
	available, err := readEntries("availableIPs", s.Available, p.Subnet)
	excluded, err2 := readEntries("excludeIPs", s.Exclude, p.Subnet)
	if err := errors.Join(err, err2); err != nil {
		return Plan{}, err
	}
	p.Notes, p.Excluded = available.notes, excluded.all
	if len(s.Available) == 1 {
		p.CIDR, _ = netip.ParsePrefix(s.Available[0]) // invalid for any other notation
	}
	unusable := slices.DeleteFunc(p.Unusable(), func(a netip.Addr) bool { return !available.all.Contains(a) })
	p.Usable = ipaddr.Subtract(available.all, excluded.all, ipaddr.SetOfAddrs(unusable...))
	if err := assignable("availableIPs", p.Usable); err != nil { // of a subnet larger than those
		return Plan{}, err
	}
	p.Ranged, p.Single = ipaddr.Intersect(available.ranged, p.Usable), ipaddr.Intersect(available.single, p.Usable)
	if ipaddr.TooLarge(p.Usable) {
		return Plan{}, errors.New("availableIPs hold more addresses than a /64, the largest that a pool can hold")
	}
	return p, nil
}

func newSubnet(s PlanSpec) (p Plan, err error) {
	net, err := ipaddr.ParseAddr(s.Net)
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
	if err := assignable("net", ipaddr.SetOfAddrs(net)); err != nil {
		return p, err
	}
	if s.Gateway == "" {
		return p, nil
	}
	if p.Gateway, err = ipaddr.ParseAddr(s.Gateway); err != nil {
		return p, fmt.Errorf("gateway: %w", err)
	}
	// A subnet of one address, a host route, has its gateway elsewhere.
	if p.Gateway.Is4() != net.Is4() || !p.Subnet.IsSingleIP() && !ipaddr.Reaches(p.Subnet, p.Gateway) {
		return p, fmt.Errorf("gateway %s is not in subnet %s", p.Gateway, p.Subnet)
	}
	return p, nil
}

// assignable returns an error if a field has addresses that no pool can give to pods.
func assignable(field string, s *netipx.IPSet) error {
	if special, kind, found := ipaddr.Special(s); found {
		return fmt.Errorf("%s: addresses of %s (%s) cannot be given to pods", field, special, kind)
	}
	return nil
}

// Unusable returns the addresses of the subnet that nobody gets: the network and broadcast addresses, and the gateway
// if there is one. A subnet of one or two addresses has neither network nor broadcast address (RFC 3021, RFC 6164);
// IPv6 has no broadcast.
func (p Plan) Unusable() []netip.Addr {
	var addrs []netip.Addr
	if p.Gateway.IsValid() {
		addrs = append(addrs, p.Gateway)
	}
	if p.Subnet.Bits() < p.Subnet.Addr().BitLen()-1 {
		addrs = append(addrs, p.Subnet.Addr())
		if p.Subnet.Addr().Is4() {
			addrs = append(addrs, netipx.PrefixLastIP(p.Subnet))
		}
	}
	return addrs
}

// Role names what an unusable address is for.
func (p Plan) Role(a netip.Addr) string {
	switch a {
	case p.Gateway:
		return "gateway"
	case p.Subnet.Addr():
		return "network address"
	default:
		return "broadcast address"
	}
}

// Addresses lists the usable addresses in order: those written singly, and with ranged also those
// written as ranges and CIDRs. The caller has checked that they are few enough.
func (p Plan) Addresses(ranged bool) []netip.Addr {
	set := p.Single
	if ranged {
		set = p.Usable
	}
	var out []netip.Addr
	for _, r := range set.Ranges() {
		for a := r.From(); a.IsValid() && a.Compare(r.To()) <= 0; a = a.Next() {
			out = append(out, a)
		}
	}
	return out
}

// maxReported is the number of wrong entries that an error spells out.
const maxReported = 10

// entries is an address list that was read.
type entries struct {
	all, single, ranged *netipx.IPSet
	notes               []string
}

func readEntries(field string, list []string, subnet netip.Prefix) (entries, error) {
	var single, ranged []netipx.IPRange
	var errs []error
	parsed := make([]netipx.IPRange, 0, len(list))
	for i, entry := range list {
		got, err := ipaddr.ParseRange(entry)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s[%d]: %w", field, i, err))
		case got.From().Is4() != subnet.Addr().Is4():
			errs = append(errs, fmt.Errorf("%s[%d]: %q is not of the family of subnet %s", field, i, entry, subnet))
		case !subnet.Contains(got.From()) || !subnet.Contains(got.To()):
			errs = append(errs, fmt.Errorf("%s[%d]: %q is not in subnet %s", field, i, entry, subnet))
		case got.From() == got.To():
			single = append(single, got)
			parsed = append(parsed, got)
		default:
			ranged = append(ranged, got)
			parsed = append(parsed, got)
		}
	}
	if n := len(errs); n > maxReported {
		errs = append(errs[:maxReported], fmt.Errorf("%s: %d more entries are wrong", field, n-maxReported))
	}
	if err := errors.Join(errs...); err != nil {
		return entries{}, err
	}
	e := entries{single: ipaddr.SetOf(single...), ranged: ipaddr.SetOf(ranged...)}
	switch {
	case len(single) == 0:
		e.all = e.ranged
	case len(ranged) == 0:
		e.all = e.single
	default:
		e.all = ipaddr.SetOf(parsed...)
	}
	if a, b, found := ipaddr.FirstOverlap(parsed); found {
		e.notes = append(e.notes, fmt.Sprintf("%s: %s and %s overlap; shared addresses count once",
			field, ipaddr.FormatRange(a), ipaddr.FormatRange(b)))
	}
	return e, nil
}

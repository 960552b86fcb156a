package address

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// firstPart and laterParts are numbers of addresses. The first part is small, so that output begins early.
const (
	firstPart  = 256
	laterParts = 2048
)

// sortStream takes addresses in the order of their objects' names, and emits them in the order of addresses as soon as
// no smaller one can follow.
type sortStream struct {
	// begin returns the subnets from which addresses can come. It is called once, when the first part is full.
	// Addresses of other subnets may come too late for their place.
	begin func() nameOrder
	// emit takes sorted rows less than below. The last call has no valid below.
	emit func(part []resource.LeaseRow, below netip.Addr) error

	coming *nameOrder
	held   []resource.LeaseRow
	next   int // number of held rows at which the next part is due
	passed netip.Addr
	// late holds addresses that came after greater ones had been emitted.
	late []resource.LeaseRow
}

// add gets the next one.
func (o *sortStream) add(item resource.LeaseRow) error {
	if o.passed.IsValid() && item.Addr.Less(o.passed) {
		o.late = append(o.late, item)
		return nil
	}
	if o.next == 0 {
		o.next = firstPart
	}
	if o.held = append(o.held, item); len(o.held) < o.next {
		return nil
	}
	if o.coming == nil {
		begun := o.begin()
		o.coming = &begun
	}
	below := o.coming.smallest(ipaddr.ObjectName(item.Addr))
	if !below.IsValid() { // only addresses of other subnets can follow, which may be anywhere
		o.next = len(o.held) + laterParts
		return nil
	}
	err := o.pass(below)
	o.next = len(o.held) + laterParts
	return err
}

// pass emits the rows less than below.
func (o *sortStream) pass(below netip.Addr) error {
	var part []resource.LeaseRow
	o.held = slices.DeleteFunc(o.held, func(r resource.LeaseRow) bool {
		if r.Addr.Less(below) {
			part = append(part, r)
			return true
		}
		return false
	})
	if len(part) == 0 {
		return nil
	}
	o.passed = below
	return o.emitAll(part, below)
}

// end emits the remaining rows, then the late ones, and returns the number of the latter.
func (o *sortStream) end() (late int, err error) {
	if err := o.emitAll(o.held, netip.Addr{}); err != nil || len(o.late) == 0 {
		return 0, err
	}
	return len(o.late), o.emitAll(o.late, netip.Addr{})
}

// emitAll sorts rows and emits them in parts of laterParts, to bound the memory of their text.
func (o *sortStream) emitAll(rows []resource.LeaseRow, below netip.Addr) error {
	slices.SortStableFunc(rows, func(a, b resource.LeaseRow) int { return a.Addr.Compare(b.Addr) })
	for len(rows) > laterParts {
		if err := o.emit(rows[:laterParts], rows[laterParts].Addr); err != nil {
			return err
		}
		rows = rows[laterParts:]
	}
	return o.emit(rows, below)
}

// nameOrder knows which addresses of some subnets can still come in a list sorted by object names, in which 10.0.0.10
// comes before 10.0.0.9.
type nameOrder struct {
	// subnets are disjoint and sorted. Subnets without a later address are removed.
	subnets []netip.Prefix
}

// smallest returns the lowest address of the subnets whose object sorts after the given name; not valid if there is
// none. Successive calls must have ascending names.
func (a *nameOrder) smallest(after string) netip.Addr {
	for len(a.subnets) > 0 {
		if first := firstAfter(after, a.subnets[0]); first.IsValid() {
			return first
		}
		a.subnets = a.subnets[1:]
	}
	return netip.Addr{}
}

// firstAfter returns the lowest address of a subnet whose object sorts after name; not valid if there is none.
func firstAfter(name string, subnet netip.Prefix) netip.Addr {
	if lastName(subnet) <= name {
		return netip.Addr{}
	}
	for !subnet.IsSingleIP() {
		low := netip.PrefixFrom(subnet.Addr(), subnet.Bits()+1)
		if lastName(low) > name {
			subnet = low
			continue
		}
		subnet = netip.PrefixFrom(netipx.PrefixLastIP(low).Next(), low.Bits())
	}
	return subnet.Addr()
}

// lastName returns the greatest object name of a subnet. IPv6 names are written out in full, so the last address has
// it. For IPv4, each octet is the greatest as a string, because the dot after it sorts before digits.
func lastName(subnet netip.Prefix) string {
	last := netipx.PrefixLastIP(subnet)
	if !last.Is4() {
		return ipaddr.ObjectName(last)
	}
	from, to := subnet.Addr().As4(), last.As4()
	var octets [4]string
	for i := range octets {
		octets[i] = lastWord(from[i], to[i])
	}
	return strings.Join(octets[:], ".")
}

// lastWord returns the number from one to another whose decimal text is the greatest.
func lastWord(from, to byte) string {
	last := strconv.Itoa(int(from))
	for n := int(from) + 1; n <= int(to); n++ {
		last = max(last, strconv.Itoa(n))
	}
	return last
}

package address

import (
	"net/netip"
	"slices"

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

package address

import (
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// firstPart and laterParts are after how many addresses something is printed: soon at first, then in parts
// worth their while.
const (
	firstPart  = 256
	laterParts = 2048
)

// sortStream takes addresses in the order of their objects' names and passes them on in that of the
// addresses, as soon as no smaller one can come.
type sortStream struct {
	// begin is asked once, when there is more than the first part: which addresses can come. Those outside
	// come in their place only as long as they are not too late for it.
	begin func() nameOrder
	// emit gets what is in order below an address; the last part has none that is valid.
	emit func(part []resource.LeaseRow, below netip.Addr) error

	coming *nameOrder
	held   []resource.LeaseRow
	next   int // how many are held when the next part is due
	passed netip.Addr
	// late came after larger ones had been passed on.
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
	if !below.IsValid() { // the rest is outside of what is known, and may be anywhere
		o.next = len(o.held) + laterParts
		return nil
	}
	err := o.pass(below)
	o.next = len(o.held) + laterParts
	return err
}

// pass passes on what is below an address.
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

// end passes on what is left, and says how many came too late for their place: they are the last.
func (o *sortStream) end() (late int, err error) {
	if err := o.emitAll(o.held, netip.Addr{}); err != nil || len(o.late) == 0 {
		return 0, err
	}
	return len(o.late), o.emitAll(o.late, netip.Addr{})
}

// emitAll sorts rows and passes them on in parts that are not too large to be turned into text.
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

package ipam

import (
	"net/netip"
	"slices"
)

// assumptions has the addresses that are assumed, each for one attachment, and counts those whose outcome is unknown.
type assumptions struct {
	assumed map[netip.Addr]Assumed
	unknown int
	// coming are the addresses that are assumed for a host, by host and pool.
	coming map[hostPool][]netip.Addr
}

func newAssumptions() assumptions {
	return assumptions{assumed: map[netip.Addr]Assumed{}, coming: map[hostPool][]netip.Addr{}}
}

func (x *assumptions) add(a netip.Addr, h Assumed) {
	x.assumed[a] = h
	if h.Host.IsValid() {
		at := hostPool{h.Host, h.Pool}
		x.coming[at] = append(x.coming[at], a)
	}
}

func (x *assumptions) remove(a netip.Addr, h Assumed) {
	delete(x.assumed, a)
	at := hostPool{h.Host, h.Pool}
	if x.coming[at] = slices.DeleteFunc(x.coming[at], func(b netip.Addr) bool { return b == a }); len(x.coming[at]) == 0 {
		delete(x.coming, at)
	}
}

// assume keeps an address for an attachment.
func (x *state) assume(a netip.Addr, h Assumed) {
	x.removeAssumed(a)
	r := x.record(a)
	x.adjustCharges(a, r, -1)
	x.assumptions.add(a, h)
	x.adjustCharges(a, r, +1)
	x.refresh(a)
}

// removeAssumed ends the assumption of an address, if there is one; the caller has the address refreshed.
func (x *state) removeAssumed(a netip.Addr) {
	h, ok := x.assumed[a]
	if !ok {
		return
	}
	r := x.record(a)
	x.adjustCharges(a, r, -1)
	x.assumptions.remove(a, h)
	x.adjustCharges(a, r, +1)
}

// endAssumed forgets an address that is assumed.
func (x *state) endAssumed(a netip.Addr, h Assumed) {
	if h.Unknown {
		x.unknown--
	}
	x.removeAssumed(a)
	x.refresh(a)
}

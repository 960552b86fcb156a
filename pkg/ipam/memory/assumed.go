package memory

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Assume keeps an address for an attachment.
func (x *State) Assume(a netip.Addr, h ledger.Assumed) {
	x.RemoveAssumed(a)
	r := x.Leases.Record(a)
	x.adjustCharges(a, r, -1)
	x.Assumed.Add(a, h)
	x.adjustCharges(a, r, +1)
	x.Refresh(a)
}

// RemoveAssumed ends the assumption of an address, if there is one; the caller has the address refreshed.
func (x *State) RemoveAssumed(a netip.Addr) {
	h, ok := x.Assumed.ByAddr[a]
	if !ok {
		return
	}
	r := x.Leases.Record(a)
	x.adjustCharges(a, r, -1)
	x.Assumed.Remove(a, h)
	x.adjustCharges(a, r, +1)
}

// EndAssumed forgets an address that is assumed.
func (x *State) EndAssumed(a netip.Addr, h ledger.Assumed) {
	if h.Unknown {
		x.Assumed.Unknown--
	}
	x.RemoveAssumed(a)
	x.Refresh(a)
}

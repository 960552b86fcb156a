package ipam

import (
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// MarkUnknown keeps an address assumed until Forget or Settle: the outcome of its write is unknown.
// Version is that of the object that the write would replace, 0 for none.
func (x *Index) MarkUnknown(a netip.Addr, version uint64, key string, now time.Time) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	h := x.core.state.assumed.ByAddr[a]
	if !h.Unknown {
		x.core.state.assumed.Unknown++
	}
	h.Key, h.Unknown, h.Version, h.Since = key, true, version, now
	x.core.state.assume(a, h)
}

// Settle forgets an address with an unknown outcome when its object has a later version than the write was for: the
// write has lost or won.
func (x *Index) Settle(a netip.Addr, version uint64) {
	x.core.mu.RLock()
	some := x.core.state.assumed.Unknown > 0
	x.core.mu.RUnlock()
	if !some { // as nearly always
		return
	}
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if h, ok := x.core.state.assumed.ByAddr[a]; ok && h.Unknown && version > h.Version {
		x.core.state.endAssumed(a, h)
	}
}

// Forget ends the assumption of an address, if there is one.
func (x *Index) Forget(a netip.Addr) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if h, ok := x.core.state.assumed.ByAddr[a]; ok {
		x.core.state.endAssumed(a, h)
	}
}

// ForgetKey forgets an address that is assumed for a key, unless the outcome of its write is unknown.
func (x *Index) ForgetKey(a netip.Addr, key string) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if h, ok := x.core.state.assumed.ByAddr[a]; ok && h.Key == key && !h.Unknown {
		x.core.state.removeAssumed(a)
		x.core.state.refresh(a)
	}
}

// Unknown returns the addresses of an attachment whose outcome is unknown; of all attachments when key is empty.
func (x *Index) Unknown(key string) map[netip.Addr]ledger.Assumed {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	if x.core.state.assumed.Unknown == 0 {
		return nil
	}
	out := map[netip.Addr]ledger.Assumed{}
	for a, h := range x.core.state.assumed.ByAddr {
		if h.Unknown && (key == "" || h.Key == key) {
			out[a] = h
		}
	}
	return out
}

// assume keeps an address for an attachment.
func (x *state) assume(a netip.Addr, h ledger.Assumed) {
	x.removeAssumed(a)
	r := x.leases.Record(a)
	x.adjustCharges(a, r, -1)
	x.assumed.Add(a, h)
	x.adjustCharges(a, r, +1)
	x.refresh(a)
}

// removeAssumed ends the assumption of an address, if there is one; the caller has the address refreshed.
func (x *state) removeAssumed(a netip.Addr) {
	h, ok := x.assumed.ByAddr[a]
	if !ok {
		return
	}
	r := x.leases.Record(a)
	x.adjustCharges(a, r, -1)
	x.assumed.Remove(a, h)
	x.adjustCharges(a, r, +1)
}

// endAssumed forgets an address that is assumed.
func (x *state) endAssumed(a netip.Addr, h ledger.Assumed) {
	if h.Unknown {
		x.assumed.Unknown--
	}
	x.removeAssumed(a)
	x.refresh(a)
}

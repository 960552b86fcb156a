package ipam

import (
	"net/netip"
	"time"
)

// MarkUnknown keeps an address assumed until Forget or Settle: the outcome of its write is unknown.
// Version is that of the object that the write would replace, 0 for none.
func (x *Index) MarkUnknown(a netip.Addr, version uint64, key string, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	h := x.assumed[a]
	if !h.Unknown {
		x.unknown++
	}
	h.Key, h.Unknown, h.Version, h.Since = key, true, version, now
	x.assume(a, h)
}

// Settle forgets an address with an unknown outcome when its object has a later version than the write was for: the
// write has lost or won.
func (x *Index) Settle(a netip.Addr, version uint64) {
	x.mu.RLock()
	some := x.unknown > 0
	x.mu.RUnlock()
	if !some { // as nearly always
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if h, ok := x.assumed[a]; ok && h.Unknown && version > h.Version {
		x.endAssumed(a, h)
	}
}

// Forget ends the assumption of an address, if there is one.
func (x *Index) Forget(a netip.Addr) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if h, ok := x.assumed[a]; ok {
		x.endAssumed(a, h)
	}
}

// ForgetKey forgets an address that is assumed for a key, unless the outcome of its write is unknown.
func (x *Index) ForgetKey(a netip.Addr, key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if h, ok := x.assumed[a]; ok && h.Key == key && !h.Unknown {
		x.removeAssumed(a)
		x.refresh(a)
	}
}

// Unknown returns the addresses of an attachment whose outcome is unknown; of all attachments when key is empty.
func (x *Index) Unknown(key string) map[netip.Addr]Assumed {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.unknown == 0 {
		return nil
	}
	out := map[netip.Addr]Assumed{}
	for a, h := range x.assumed {
		if h.Unknown && (key == "" || h.Key == key) {
			out[a] = h
		}
	}
	return out
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

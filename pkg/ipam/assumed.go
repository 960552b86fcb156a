package ipam

import (
	"net/netip"
	"time"
)

// Assumed is an address that is kept for one attachment while a write for it is under way, or while the outcome of
// such a write is unknown. Nobody else is given the address meanwhile.
type Assumed struct {
	// Key names the attachment.
	Key string
	// Host that the attachment is on, invalid for one on none, and the pool that the address is picked from.
	Host netip.Addr
	Pool string
	// Charged are the namespaces that the address counts for meanwhile.
	Charged ChargedNamespaces
	// Unknown: the outcome of the write is unknown. Version is that of the object that it would replace, 0 for none.
	Unknown bool
	Version uint64
	Since   time.Time
}

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

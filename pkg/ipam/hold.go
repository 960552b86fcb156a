package ipam

import (
	"net/netip"
	"time"
)

// Hold keeps an address for one attachment while a write for it is under way, or while it is in
// doubt whether such a write was stored. Nobody else is given the address meanwhile.
type Hold struct {
	// Key names the attachment.
	Key string
	// Host that the attachment is on, invalid for one on none, and the pool that the address is picked from.
	Host netip.Addr
	Pool string
	// Payers are the namespaces that the address counts for meanwhile.
	Payers Payers
	// Doubt: the outcome of the write is unknown. Version is that of the object that it would replace, 0 for none.
	Doubt   bool
	Version uint64
	Since   time.Time
}

// Doubt turns the hold of an address into one that stays until Drop or Settle: the outcome of its write is unknown.
// Version is that of the object that the write would replace, 0 for none.
func (x *Index) Doubt(a netip.Addr, version uint64, key string, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	h := x.holds[a]
	if !h.Doubt {
		x.doubts++
	}
	h.Key, h.Doubt, h.Version, h.Since = key, true, version, now
	x.setHold(a, h)
}

// Settle ends the doubt about a write when the object of its address has a later version than the write was for: the
// write has lost or won.
func (x *Index) Settle(a netip.Addr, version uint64) {
	x.mu.RLock()
	some := x.doubts > 0
	x.mu.RUnlock()
	if !some { // as nearly always
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if h, ok := x.holds[a]; ok && h.Doubt && version > h.Version {
		x.endHold(a, h)
	}
}

// Drop ends the hold of an address.
func (x *Index) Drop(a netip.Addr) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if h, ok := x.holds[a]; ok {
		x.endHold(a, h)
	}
}

// endHold ends a hold that there is.
func (x *Index) endHold(a netip.Addr, h Hold) {
	if h.Doubt {
		x.doubts--
	}
	x.forgetHold(a)
	x.refresh(a)
}

// DropHold is Drop for a hold of a key that is not in doubt; any other stays.
func (x *Index) DropHold(a netip.Addr, key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if h, ok := x.holds[a]; ok && h.Key == key && !h.Doubt {
		x.forgetHold(a)
		x.refresh(a)
	}
}

// Doubts are the addresses in doubt for an attachment; for all of them when key is empty.
func (x *Index) Doubts(key string) map[netip.Addr]Hold {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.doubts == 0 {
		return nil
	}
	out := map[netip.Addr]Hold{}
	for a, h := range x.holds {
		if h.Doubt && (key == "" || h.Key == key) {
			out[a] = h
		}
	}
	return out
}

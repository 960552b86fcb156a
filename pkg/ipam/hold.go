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
	// Doubt: the outcome of the write is unknown.
	Doubt bool
	Since time.Time
}

// Doubt turns the hold of an address into one that stays until Drop: the outcome of its write is unknown.
func (x *Index) Doubt(a netip.Addr, key string, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	h := x.holds[a]
	if !h.Doubt {
		x.doubts++
	}
	h.Key, h.Doubt, h.Since = key, true, now
	x.setHold(a, h)
}

// Drop ends the hold of an address.
func (x *Index) Drop(a netip.Addr) {
	x.mu.Lock()
	defer x.mu.Unlock()
	h, ok := x.holds[a]
	if !ok {
		return
	}
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

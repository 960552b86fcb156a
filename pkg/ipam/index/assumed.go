package index

import (
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// MarkUnknown keeps an address assumed until Forget or Settle: the outcome of its write is unknown.
// Version is that of the object that the write would replace, 0 for none.
func (x *Index) MarkUnknown(a netip.Addr, version uint64, key string, now time.Time) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	h := x.core.state.Assumed.ByAddr[a]
	if !h.Unknown {
		x.core.state.Assumed.Unknown++
	}
	h.Key, h.Unknown, h.Version, h.Since = key, true, version, now
	x.core.state.Assume(a, h)
}

// Settle forgets an address with an unknown outcome when its object has a later version than the write was for: the
// write has lost or won.
func (x *Index) Settle(a netip.Addr, version uint64) {
	x.core.mu.RLock()
	some := x.core.state.Assumed.Unknown > 0
	x.core.mu.RUnlock()
	if !some { // as nearly always
		return
	}
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if h, ok := x.core.state.Assumed.ByAddr[a]; ok && h.Unknown && version > h.Version {
		x.core.state.EndAssumed(a, h)
	}
}

// Forget ends the assumption of an address, if there is one.
func (x *Index) Forget(a netip.Addr) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if h, ok := x.core.state.Assumed.ByAddr[a]; ok {
		x.core.state.EndAssumed(a, h)
	}
}

// ForgetKey forgets an address that is assumed for a key, unless the outcome of its write is unknown.
func (x *Index) ForgetKey(a netip.Addr, key string) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if h, ok := x.core.state.Assumed.ByAddr[a]; ok && h.Key == key && !h.Unknown {
		x.core.state.RemoveAssumed(a)
		x.core.state.Refresh(a)
	}
}

// Unknown returns the addresses of an attachment whose outcome is unknown; of all attachments when key is empty.
func (x *Index) Unknown(key string) map[netip.Addr]ledger.Assumed {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	if x.core.state.Assumed.Unknown == 0 {
		return nil
	}
	out := map[netip.Addr]ledger.Assumed{}
	for a, h := range x.core.state.Assumed.ByAddr {
		if h.Unknown && (key == "" || h.Key == key) {
			out[a] = h
		}
	}
	return out
}

// AssumeTakeOver assumes an address for a request that takes it over now, where TakeOverParams allows that. It stays
// assumed until Forget. held is false if it was assumed already.
func (x *Index) AssumeTakeOver(w ipam.PickRequest, l lease.Lease, now time.Time) (held bool, refusal *ipam.Refusal) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	p, refusal := x.core.picker.TakeOverPool(w, l)
	if _, before := x.core.state.Assumed.ByAddr[l.Addr]; p == nil || refusal != nil || before {
		return false, refusal
	}
	x.core.state.Assume(l.Addr, ledger.Assumed{Key: w.Key, Host: w.Host, Pool: p.CountedAs(), Charged: w.ChargedTo(),
		Since: now})
	return true, nil
}

// TakeOverParams returns the values of the pool with which a request may take over an address that an earlier pod of
// its claim has. ok is false if it may not: no pool has the address any more, or the request's terms exclude it.
// If the pool does not serve the request there is a refusal.
func (x *Index) TakeOverParams(w ipam.PickRequest, l lease.Lease) (p lease.Params, ok bool, refusal *ipam.Refusal) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	pool, refusal := x.core.picker.TakeOverPool(w, l)
	if pool == nil || refusal != nil {
		return p, false, refusal
	}
	return pool.Params(), true, nil
}

// RetainsOwn reports whether an address is kept for the request's own pod in the place of one that it took as a new
// one.
func (x *Index) RetainsOwn(w ipam.PickRequest, taken lease.Lease) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.picker.RetainsOwn(w, taken)
}

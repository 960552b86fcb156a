package ipam

import (
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// AssumeTakeOver assumes an address for a request that takes it over now, where TakeOverParams allows that. It stays
// assumed until Forget. held is false where it was assumed already.
func (x *Index) AssumeTakeOver(w PickRequest, l lease.Lease, now time.Time) (held bool, refusal *Refusal) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	p, refusal := x.core.picker.takeOverPool(w, l)
	if _, before := x.core.state.assumed.ByAddr[l.Addr]; p == nil || refusal != nil || before {
		return false, refusal
	}
	x.core.state.assume(l.Addr, ledger.Assumed{Key: w.Key, Host: w.Host, Pool: p.CountedAs(), Charged: w.chargedTo(),
		Since: now})
	return true, nil
}

// TakeOverParams returns the values of the pool with which a request may take over an address that an earlier pod of
// its claim has. ok is false where it may not: no pool has the address any more, or the request's terms exclude it.
// Where the pool does not serve the request there is a refusal.
func (x *Index) TakeOverParams(w PickRequest, l lease.Lease) (p lease.Params, ok bool, refusal *Refusal) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	pool, refusal := x.core.picker.takeOverPool(w, l)
	if pool == nil || refusal != nil {
		return p, false, refusal
	}
	return pool.Params(), true, nil
}

// takeOverPool returns the pool by which a request may take over an address; nil where it may not.
func (x *picker) takeOverPool(w PickRequest, l lease.Lease) (*poolState, *Refusal) {
	n := w.needFor(l)
	if n.among != nil && !n.among.Contains(l.Addr) || !w.Families.Wants(n.family) {
		return nil, nil
	}
	pool, refusal := x.retainingPool(w, l.Addr)
	if pool == nil {
		return nil, refusal
	}
	if l.Host != w.Host && (l.Other == nil || l.Other.Host != w.Host) && x.bounds.hostFull(pool, w, nil) {
		return nil, x.bounds.noneOnHost(pool, w, nil)
	}
	if ns := x.bounds.overQuota(pool, w, l.Addr, nil); ns != "" {
		return nil, x.bounds.quotaExceeded(pool, w, ns, nil)
	}
	return pool, nil
}

// RetainsOwn reports whether an address is kept for the request's own pod in the place of one that it took as a new
// one.
func (x *Index) RetainsOwn(w PickRequest, taken lease.Lease) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.picker.retainsOwn(w, taken)
}

// retainsOwn reports what Index.RetainsOwn does.
func (x *picker) retainsOwn(w PickRequest, taken lease.Lease) bool {
	own, refusal := x.retainedOwn(w, w.needFor(taken))
	return own.pool != nil || refusal != nil
}

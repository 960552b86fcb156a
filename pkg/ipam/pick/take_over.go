package pick

import (
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// TakeOverPool returns the pool by which a request may take over an address; nil if it may not.
func (x *Picker) TakeOverPool(w ipam.PickRequest, l lease.Lease) (*memory.PoolState, *ipam.Refusal) {
	n := w.NeedFor(l)
	if n.Among != nil && !n.Among.Contains(l.Addr) || !w.Families.Wants(n.Family) {
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

// RetainsOwn reports what Index.RetainsOwn does.
func (x *Picker) RetainsOwn(w ipam.PickRequest, taken lease.Lease) bool {
	own, refusal := x.retainedOwn(w, w.NeedFor(taken))
	return own.Pool != nil || refusal != nil
}

package ipam

import (
	"iter"
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// ByClaim are the addresses of a claim: those in use and those that are kept for it.
func (x *Index) ByClaim(claim string) []Lease {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []Lease
	for r := range x.claimed(claim) {
		out = append(out, r.lease())
	}
	return sorted(out)
}

// ByKey are the addresses of a claim that are for one pod of it, by its primary key; in use or kept.
func (x *Index) ByKey(claim, key string) []Lease {
	if claim == "" || key == "" {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []Lease
	for r := range x.keyed(claim, key) {
		out = append(out, r.lease())
	}
	return sorted(out)
}

func (x *Index) keyed(claim, key string) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for r := x.byKey.first(x.hashKey(claim, key)); r != nil; r = r.extra.nextKey {
			if r.claim() == claim && r.key() == key && !yield(r) {
				return
			}
		}
	}
}

// pickRetained chooses of the addresses that are kept for the request's claim one of each family that it lacks: the one
// of its own pod, else the one most recently given up that is for no pod in particular. An address that is
// kept for its pod and cannot be had at present is not replaced by another.
func (x *Index) pickRetained(w PickRequest, choices []choice) ([]choice, *Refusal) {
	if w.Claim == "" {
		return choices, nil
	}
	for _, n := range w.needs() {
		if w.covers(n, choices) {
			continue
		}
		c, refusal := x.retainedOne(w, n, choices)
		switch {
		case refusal != nil:
			return nil, refusal
		case c.pool != nil:
			choices = append(choices, c)
		}
	}
	return choices, nil
}

func (x *Index) retainedOne(w PickRequest, n need, chosen []choice) (choice, *Refusal) {
	c, refusal := x.retainedOwn(w, n)
	switch {
	case refusal != nil:
		return c, refusal
	case c.pool != nil:
		return c, x.bars(c.pool, w, c.addr, chosen)
	}
	return x.retainedForAny(w, n, chosen), nil
}

// retainedOwn is the address that is kept for the request's own pod, if there is one that its pool has still.
func (x *Index) retainedOwn(w PickRequest, n need) (own choice, refusal *Refusal) {
	if w.Claim == "" || w.PodPrimaryKey == "" {
		return own, nil
	}
	for r := range x.keyed(w.Claim, w.PodPrimaryKey) {
		if !waits(r, w, n) {
			continue
		}
		p, refusal := x.retainingPool(w, r.addr)
		switch {
		case refusal != nil:
			return own, refusal
		case p == nil:
			continue
		case x.busy(r):
			return own, refuse(ReasonAddressInUse, explain.Facts{Kind: explain.OwnAddressBeingGiven, Address: r.addr, Who: w.Who})
		}
		own = choice{p, r.addr, n.slot}
	}
	return own, nil
}

// retainingPool is the pool by which an address of the request's claim may go to the request: nil where no pool has
// the address any more, and a refusal where its pool does not serve the request.
func (x *Index) retainingPool(w PickRequest, a netip.Addr) (*poolState, *Refusal) {
	p, _, served := x.serving(a)
	switch {
	case !served || p.Terminating:
		return nil, nil
	case !x.fits(p, w):
		return nil, x.retainedElsewhere(w, a, p)
	}
	return p, nil
}

// AssumeTakeOver is TakeOverParams for a request that takes the address over now. It is assumed for the request until Forget, unless
// it is assumed already.
func (x *Index) AssumeTakeOver(w PickRequest, l Lease, now time.Time) (held bool, refusal *Refusal) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, refusal := x.takeOverPool(w, l)
	if _, before := x.assumed[l.Addr]; p == nil || refusal != nil || before {
		return false, refusal
	}
	x.assume(l.Addr, Assumed{Key: w.Key, Host: w.Host, Pool: p.Name, Charged: w.chargedTo(), Since: now})
	return true, nil
}

// TakeOverParams says on which values of its pool a request may take over an address that an earlier pod of its claim
// has: ok is false where it may not, because no pool has the address any more or the request's terms exclude it.
// Where the pool does not serve the request there is a refusal.
func (x *Index) TakeOverParams(w PickRequest, l Lease) (p Params, ok bool, refusal *Refusal) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	pool, refusal := x.takeOverPool(w, l)
	if pool == nil || refusal != nil {
		return p, false, refusal
	}
	return pool.Params(), true, nil
}

func (x *Index) takeOverPool(w PickRequest, l Lease) (*poolState, *Refusal) {
	if n := w.needFor(l); n.among != nil && !n.among.Contains(l.Addr) {
		return nil, nil
	}
	pool, refusal := x.retainingPool(w, l.Addr)
	if pool == nil {
		return nil, refusal
	}
	if l.Host != w.Host && x.hostFull(pool, w, nil) {
		return nil, x.noneOnHost(pool, w, nil)
	}
	if ns := x.overQuota(pool, w, l.Addr, nil); ns != "" {
		return nil, x.quotaExceeded(pool, w, ns, nil)
	}
	return pool, nil
}

// RetainsOwn reports whether an address is kept for the request's own pod in the place of one that it took as a new one.
func (x *Index) RetainsOwn(w PickRequest, taken Lease) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	own, refusal := x.retainedOwn(w, w.needFor(taken))
	return own.pool != nil || refusal != nil
}

// waits says whether an address is reserved for a need of the request.
func waits(r *record, w PickRequest, n need) bool {
	name := r.ifName.Value()
	return r.state == Reserved && ipaddr.FamilyOf(r.addr) == n.family && !r.has(flagDeleting) && (n.among == nil || n.among.Contains(r.addr)) &&
		(name == "" || name == w.IfName && int(r.slot) == n.slot)
}

// busy reports whether an address that is reserved is on its way to somebody, missing, or a node's.
func (x *Index) busy(r *record) bool {
	_, held := x.assumed[r.addr]
	_, lost := x.missing[r.addr]
	_, node := x.nodeIP[r.addr]
	return held || lost || node
}

func (x *Index) retainedElsewhere(w PickRequest, a netip.Addr, p *poolState) *Refusal {
	why := x.unfit(w, a, p)
	return refuse(ReasonClaimConflict, explain.Facts{
		Kind: explain.OwnAddressElsewhere, Address: a, Who: w.Who, Claim: w.Claim, Pool: p.Name, Because: []string{why.Message},
	})
}

// full refuses a claim that has all the addresses of a family that it may have.
func (x *Index) full(w PickRequest, f ipaddr.Family) *Refusal {
	if w.Claim == "" || w.Room == 0 {
		return nil
	}
	n := 0
	if c := x.byClaim[w.Claim]; c != nil {
		n = c.n[f]
	}
	coming := 0
	if w.Coming != nil && n < w.Room {
		coming = w.Coming(f)
	}
	if n+coming < w.Room {
		return nil
	}
	share := explain.Share{Has: n, Coming: coming, Limit: max(w.Room, 0)}
	return refuse(ReasonClaimFull, explain.Facts{Kind: explain.ClaimFull, Who: w.Who, Claim: w.Claim, Share: share})
}

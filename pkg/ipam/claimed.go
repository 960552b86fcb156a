package ipam

import "iter"

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

func (x *Index) claimed(claim string) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for r := x.byClaim.first(x.hashClaim(claim)); r != nil; r = r.extra.nextClaim {
			if r.claim() == claim && !yield(r) {
				return
			}
		}
	}
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

// kept chooses of the addresses that are kept for the request's claim one of each family that it lacks: the one
// of its own pod, else the one most recently given up that is for no pod in particular. An address that is
// kept for its pod and cannot be had at present is not replaced by another.
func (x *Index) kept(w Want, choices []choice) ([]choice, *Refusal) {
	if w.Claim == "" {
		return choices, nil
	}
	for _, n := range w.needs() {
		if w.covers(n, choices) {
			continue
		}
		c, refusal := x.keptOne(w, n)
		switch {
		case refusal != nil:
			return nil, refusal
		case c.pool != nil:
			choices = append(choices, c)
		}
	}
	return choices, nil
}

func (x *Index) keptOne(w Want, n need) (best choice, refusal *Refusal) {
	if w.PodPrimaryKey != "" {
		for r := range x.keyed(w.Claim, w.PodPrimaryKey) {
			if !waits(r, w, n) {
				continue
			}
			p, _, served := x.serving(r.addr)
			switch {
			case !served || p.Terminating: // the pool gave it up
				continue
			case !x.fits(p, w):
				return best, x.keptElsewhere(w, r, p)
			case x.busy(r):
				return best, Refuse(ReasonAddressInUse, "address %s, which is kept for %s, is being given to another request", r.addr, w.Who).
					WithHint("ask again in a moment")
			}
			best = choice{p, r.addr, n.slot}
		}
		if best.pool != nil {
			return best, nil
		}
	}
	var at int64
	for r := range x.claimed(w.Claim) {
		if r.key() != "" || !waits(r, w, n) || x.busy(r) {
			continue
		}
		p, _, served := x.serving(r.addr)
		if !served || p.Terminating || !x.fits(p, w) {
			continue
		}
		if best.pool == nil || r.updated > at || r.updated == at && r.addr.Less(best.addr) {
			best, at = choice{p, r.addr, n.slot}, r.updated
		}
	}
	return best, nil
}

// waits says whether an address is reserved for a need of the request.
func waits(r *record, w Want, n need) bool {
	name := r.ifName.Value()
	return r.state == Reserved && r.addr.Is4() == n.is4 && !r.has(flagDeleting) && (n.among == nil || n.among.Contains(r.addr)) &&
		(name == "" || name == w.IfName && int(r.slot) == n.slot)
}

// busy says whether an address that is reserved is on its way to somebody, lost, or a node's.
func (x *Index) busy(r *record) bool {
	_, held := x.holds[r.addr]
	_, lost := x.lost[r.addr]
	_, node := x.nodeIP[r.addr]
	return held || lost || node
}

func (x *Index) keptElsewhere(w Want, r *record, p *poolState) *Refusal {
	refusal := x.unfit(w, r.addr, p)
	return Refuse(ReasonClaimConflict, "address %s is kept for %s by claim %s, and cannot be given to it here: %s", r.addr, w.Who, w.Claim, refusal.Message).
		WithHint("let the pod run on a host of pool %s, or give the address up: bcsnetctl ip release %s", p.Name, r.addr)
}

// full refuses a claim that has all the addresses of a family that it may have.
func (x *Index) full(w Want, is4 bool) *Refusal {
	if w.Claim == "" || w.Room == 0 {
		return nil
	}
	n := 0
	for r := range x.claimed(w.Claim) {
		if r.addr.Is4() == is4 {
			n++
		}
	}
	if n < w.Room {
		return nil
	}
	return Refuse(ReasonClaimFull, "no available IP for %s: claim %s holds %d of %d addresses, and none of them is free for it", w.Who, w.Claim, n, w.Room).
		WithHint("wait until a pod of the claim ends, or let it have more: bcsnetctl claim resize %s N", w.Claim)
}

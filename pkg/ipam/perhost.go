package ipam

import (
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/explain"
)

// hostPool is a host, and a pool that it has addresses of.
type hostPool struct {
	host netip.Addr
	pool string
}

// hostPoolOf is where an address is in use; ok is false for one that nobody on a host has.
func hostPoolOf(r *record) (at hostPool, ok bool) {
	at = hostPool{r.host.Value(), r.params.Value().Pool}
	return at, r.state == Active && at.host.IsValid()
}

// adjustUsage counts an address that is in use, or that is missing and was, where it is.
func (x *Index) adjustUsage(r *record, by int) {
	at, ok := hostPoolOf(r)
	if !ok {
		return
	}
	if x.inUse[at] += by; x.inUse[at] == 0 {
		delete(x.inUse, at)
	}
}

// has reports whether an address is among those that adjustUsage counts at a place.
func (x *Index) has(at hostPool, a netip.Addr) bool {
	for _, r := range []*record{x.record(a), x.missing[a]} {
		if r == nil {
			continue
		}
		if is, ok := hostPoolOf(r); ok && is == at {
			return true
		}
	}
	return false
}

// assume keeps an address for an attachment.
func (x *Index) assume(a netip.Addr, h Assumed) {
	x.removeAssumed(a)
	r := x.record(a)
	x.adjustCharges(a, r, -1)
	x.assumed[a] = h
	x.adjustCharges(a, r, +1)
	if h.Host.IsValid() {
		at := hostPool{h.Host, h.Pool}
		x.coming[at] = append(x.coming[at], a)
	}
	x.refresh(a)
}

// removeAssumed ends the assumption of an address, if there is one; the caller has the address refreshed.
func (x *Index) removeAssumed(a netip.Addr) {
	h, ok := x.assumed[a]
	if !ok {
		return
	}
	r := x.record(a)
	x.adjustCharges(a, r, -1)
	delete(x.assumed, a)
	x.adjustCharges(a, r, +1)
	at := hostPool{h.Host, h.Pool}
	if x.coming[at] = slices.DeleteFunc(x.coming[at], func(b netip.Addr) bool { return b == a }); len(x.coming[at]) == 0 {
		delete(x.coming, at)
	}
}

// hostFull says whether the host of a request has as many addresses of a pool as one host may have, with those that were
// chosen for the request already. A request by hand, and one that is ahead of all pods, is on no host.
func (x *Index) hostFull(p *poolState, w PickRequest, chosen []choice) bool {
	if p.MaxPerHost == 0 || !w.Host.IsValid() || w.AnyHost {
		return false
	}
	n, coming := x.onHost(p, w, chosen)
	return n+coming >= p.MaxPerHost
}

// onHost is how many addresses of a pool the host of a request has, and how many more it is to have: those that are being
// given to it, that were chosen for the request, and that are expected there.
func (x *Index) onHost(p *poolState, w PickRequest, chosen []choice) (n, coming int) {
	at := hostPool{w.Host, p.Name}
	held := x.coming[at]
	for _, a := range held {
		if !x.has(at, a) { // the write may have arrived already
			coming++
		}
	}
	isChosen := func(a netip.Addr) bool {
		return slices.ContainsFunc(chosen, func(c choice) bool { return c.addr == a })
	}
	for _, c := range chosen {
		if c.pool == p {
			coming++
		}
	}
	if w.Expected != nil {
		for _, a := range w.Expected(p.Name) {
			if !x.has(at, a) && !slices.Contains(held, a) && !isChosen(a) {
				coming++
			}
		}
	}
	return x.inUse[at], coming
}

// noneOnHost refuses an address of a pool of which the host has as many as it may have, with those that were chosen for
// the request already.
func (x *Index) noneOnHost(p *poolState, w PickRequest, chosen []choice) *Refusal {
	share := x.hostShare(p, w, chosen)
	return refuse(ReasonHostFull, explain.Facts{Kind: explain.HostFull, Who: w.Who, Host: w.Host, Pool: p.Name, Share: share})
}

// hostShare returns how many addresses of a pool the host of a request has, how many are on their way there, and how many
// it may have.
func (x *Index) hostShare(p *poolState, w PickRequest, chosen []choice) explain.Share {
	n, coming := x.onHost(p, w, chosen)
	return explain.Share{Has: n, Coming: coming, Limit: p.MaxPerHost}
}

// barred says whether a pool gives a request no address beside those chosen for it, because of what its host or a
// namespace may have. a is the address where it is known already.
func (x *Index) barred(p *poolState, w PickRequest, a netip.Addr, chosen []choice) bool {
	return x.hostFull(p, w, chosen) || x.overQuota(p, w, a, chosen) != ""
}

// bars refuses a request that a pool is barred to, nil for any other.
func (x *Index) bars(p *poolState, w PickRequest, a netip.Addr, chosen []choice) *Refusal {
	if x.hostFull(p, w, chosen) {
		return x.noneOnHost(p, w, chosen)
	}
	if ns := x.overQuota(p, w, a, chosen); ns != "" {
		return x.quotaExceeded(p, w, ns, chosen)
	}
	return nil
}

// HeldOn is how many addresses one host, which may have several addresses itself, has of those of some pools that bound
// how many a host may have; nil for none.
func (x *Index) HeldOn(host []netip.Addr, pools []string) (n map[string]int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, name := range pools {
		if p := x.pools[name]; p == nil || p.MaxPerHost == 0 {
			continue
		}
		for _, h := range host {
			if held := x.inUse[hostPool{h, name}]; held > 0 {
				if n == nil {
					n = map[string]int{}
				}
				n[name] += held
			}
		}
	}
	return n
}

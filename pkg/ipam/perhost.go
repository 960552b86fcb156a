package ipam

import (
	"fmt"
	"net/netip"
)

// hostFull says whether the host of a request has as many addresses of a pool as one host may have, with those that were
// chosen for the request already. A request by hand, and one that is ahead of all pods, is on no host.
func (x *Index) hostFull(p *poolState, w Want, chosen []choice) bool {
	return p.MaxPerHost > 0 && w.Host.IsValid() && x.onHost(p, w, chosen) >= p.MaxPerHost
}

// onHost is how many addresses of a pool the host of a request has or is being given. It looks at all that the host has.
func (x *Index) onHost(p *poolState, w Want, chosen []choice) int {
	has := func(r *record) bool {
		return r != nil && r.state == Active && r.host.Value() == w.Host && r.params.Value().Pool == p.Name
	}
	n := 0
	for r := range x.byHost[w.Host] {
		if has(r) {
			n++
		}
	}
	for _, r := range x.lost {
		if has(r) {
			n++
		}
	}
	for a, h := range x.holds {
		// The write may have arrived already.
		if h.Host == w.Host && h.Pool == p.Name && !has(x.record(a)) {
			n++
		}
	}
	for _, c := range chosen {
		if c.pool == p {
			n++
		}
	}
	if w.Expected != nil {
		n += w.Expected(p.Name)
	}
	return n
}

// noneOnHost refuses an address of a pool of which the host has as many as it may have, with those that were chosen for
// the request already.
func (x *Index) noneOnHost(p *poolState, w Want, chosen []choice) *Refusal {
	n, with := x.onHost(p, w, chosen), ""
	if n > x.onHost(p, w, nil) {
		with = ", with those that this request takes"
	}
	return Refuse(ReasonHostFull, "no available IP for %s: host %s has %d of the %d addresses of pool %s that one host may have%s",
		w.Who, w.Host, n, p.MaxPerHost, p.Name, with).WithHint("%s", raiseLimit(p))
}

// hostCounts says how many addresses of a pool the host of a request has, where that is bounded.
func (x *Index) hostCounts(p *poolState, w Want) string {
	if p.MaxPerHost == 0 || !w.Host.IsValid() || !p.Serves() {
		return ""
	}
	return fmt.Sprintf(", host %s has %d of the %d that one host may have", w.Host, x.onHost(p, w, nil), p.MaxPerHost)
}

func raiseLimit(p *poolState) string {
	return "wait until a pod of the host ends, or raise spec.maxPerHost: bcsnetctl pool edit " + p.Name
}

// HeldOn is how many addresses one host, which may have several addresses itself, has of each pool that bounds how many
// a host may have; nil for none. Its cost is that of the addresses that are held there.
func (x *Index) HeldOn(host []netip.Addr) (n map[string]int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, h := range host {
		for r := range x.byHost[h] {
			pool := r.params.Value().Pool
			if p := x.pools[pool]; r.state != Active || p == nil || p.MaxPerHost == 0 {
				continue
			}
			if n == nil {
				n = map[string]int{}
			}
			n[pool]++
		}
	}
	return n
}

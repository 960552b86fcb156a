package ipam

import "net/netip"

// hostUsage counts the addresses in use, and those missing that were, by host and pool; none that counts for nothing.
type hostUsage struct{ inUse map[hostPool]int }

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
func (x *hostUsage) adjustUsage(r *record, by int) {
	at, ok := hostPoolOf(r)
	if !ok {
		return
	}
	if x.inUse[at] += by; x.inUse[at] == 0 {
		delete(x.inUse, at)
	}
}

// has reports whether an address is among those that adjustUsage counts at a place.
func (x *state) has(at hostPool, a netip.Addr) bool {
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

// HeldOn is how many addresses one host, which may have several addresses itself, has of those of some pools that bound
// how many a host may have; nil for none.
func (x *poolView) HeldOn(host []netip.Addr, pools []string) (n map[string]int) {
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

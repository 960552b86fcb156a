package allocator

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// answers finds the settings that an answer has beside the address, such as the gateway, and those that the lease
// stores.
type answers struct {
	engine *engine
	// gatewayOf is the gateway of a host in place of the pool's; nil if hosts replace none.
	gatewayOf func(host netip.Addr) netip.Addr
}

// settings returns what an answer of now says of an address of a pool beside the address. The gateway of the pool may
// be replaced by another one that the subnet reaches: by that of the pod, and that by the one of the host. A host
// replaces a gateway: a network without a router has none.
func (w *answers) settings(t *attempt, l lease.Lease, p ipam.Pool) lease.Settings {
	s, subnet := p.Settings(), netip.PrefixFrom(l.Addr, l.Bits)
	if p.Name == "" || !p.Valid() {
		s.Gateway = l.Gateway
	}
	if g := t.constraints.Gateway; ipaddr.Reaches(subnet, g) {
		s.Gateway, s.GatewayFrom = g, lease.FromAnnotation
	}
	if w.gatewayOf == nil || !s.Gateway.IsValid() {
		return s
	}
	for _, g := range [...]netip.Addr{t.HostGateway, w.gatewayOf(t.Host)} {
		if ipaddr.Reaches(subnet, g) && g != l.Addr {
			s.Gateway, s.GatewayFrom = g, lease.FromHost
			break
		}
	}
	return s
}

// give returns what the answer for an address is about to say, for the lease.
func (w *answers) give(t *attempt, addr netip.Addr, p ipam.Pool) lease.Given {
	return lease.NewGiven(w.settings(t, lease.Lease{Addr: addr, Params: p.Params()}, p))
}

// giveAgain returns what the answer for an address that somebody has had is about to say.
func (w *answers) giveAgain(t *attempt, l lease.Lease) lease.Given {
	p, _ := w.engine.index.Pools.Get(l.Pool)
	return lease.NewGiven(w.settings(t, l, p))
}

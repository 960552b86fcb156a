package httpapi

import (
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

func wireLease(l lease.Lease) wire.Lease {
	w := wire.Lease{
		IPAddr: l.Addr.String(), Status: l.State.String(), Pool: l.Pool, Mask: l.Bits,
		ContainerID: l.ContainerID, IfName: l.IfName, PodName: l.PodName, PodNamespace: l.Namespace,
		PodUID: l.PodUID, Owner: l.Owner, CNINetwork: l.CNINetwork, UpdateTime: store.FormatTime(l.Updated),
	}
	if g := l.UsedGateway(); g.IsValid() {
		w.Gateway = g.String()
	}
	if l.Host.IsValid() {
		w.Host = l.Host.String()
	}
	if c := l.Conflict; c != nil {
		w.Conflict = &wire.Conflict{
			MAC: c.MAC, ReportedAt: store.FormatTime(c.At), Outcome: c.Outcome.String(),
			Until: store.FormatTime(c.Until),
		}
	}
	if h := l.Other; h != nil {
		w.Second = &wire.SecondAttachment{
			Host: h.Host.String(), ContainerID: h.ContainerID, IfName: h.IfName, PodName: h.PodName, PodUID: h.PodUID,
			CNINetwork: h.CNINetwork,
		}
	}
	return w
}

func wireAddress(a allocator.Address) wire.Address {
	link := a.Settings.Link
	w := wire.Address{
		IPAddr: a.Addr.String(), Mask: a.Bits, Pool: a.Pool, VLAN: link.VLAN, MTU: link.MTU,
		MacAddr: ipaddr.MAC(a.Addr),
	}
	if g := a.Settings.Gateway; g.IsValid() {
		w.Gateway = g.String()
	}
	for _, r := range link.Routes {
		route := wire.Route{Dst: r.Dst.String()}
		if r.GW.IsValid() {
			route.GW = r.GW.String()
		}
		w.Routes = append(w.Routes, route)
	}
	if d := link.DNS; d != nil {
		w.DNS = &wire.DNS{Nameservers: d.Nameservers, Domain: d.Domain, Search: d.Search, Options: d.Options}
	}
	return w
}

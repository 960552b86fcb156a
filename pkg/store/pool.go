package store

import (
	"fmt"
	"net/netip"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Pool reads a BCSNetPool. What is wrong with its spec stands in the Problem of the answer; such a pool
// keeps its name and serves nothing.
func Pool(o *v1.BCSNetPool) ipam.Pool {
	p := ipam.Pool{
		Name: o.Name, Created: o.CreationTimestamp.Time, Generation: o.Generation,
		Network: o.Spec.Network, Priority: o.Spec.Priority, MaxPerHost: int(o.Spec.MaxPerHost),
		MaxPerNamespace: int(o.Spec.MaxPerNamespace), Quotas: quotas(o),
		Cordoned: o.Spec.Cordoned, Terminating: o.DeletionTimestamp != nil,
		Hosts: map[netip.Addr]struct{}{}, Namespaces: map[string]struct{}{},
	}
	if o.Spec.Cooldown != nil {
		p.Cooldown = o.Spec.Cooldown.Duration
	}
	for _, ns := range o.Spec.Namespaces {
		p.Namespaces[ns] = struct{}{}
	}
	for i, h := range o.Spec.Hosts {
		a, err := ipaddr.ParseAddr(h)
		if err != nil {
			p.Problem = fmt.Sprintf("hosts[%d]: %v", i, err)
			return p
		}
		p.Hosts[a] = struct{}{}
	}
	var err error
	if p.HostSubnets, err = HostSubnets(o); err != nil {
		p.Problem = err.Error()
		return p
	}
	if p.Plan, err = ipam.NewPlan(PlanSpec(o)); err == nil {
		p.Link, err = link(o)
	}
	if err != nil {
		p.Problem = err.Error()
	}
	return p
}

// quotas maps namespaces to how many addresses of a pool each may have; nil without any.
func quotas(o *v1.BCSNetPool) map[string]int {
	if len(o.Spec.Quotas) == 0 {
		return nil
	}
	all := make(map[string]int, len(o.Spec.Quotas))
	for _, q := range o.Spec.Quotas {
		all[q.Namespace] = int(q.Max)
	}
	return all
}

// HostSubnets returns the subnets of hosts that may draw from a pool. With an error come those before the wrong one.
func HostSubnets(o *v1.BCSNetPool) (ipam.Networks, error) {
	all := make(ipam.Networks, len(o.Spec.HostSubnets))
	for i, text := range o.Spec.HostSubnets {
		network, err := ipaddr.ParseNetwork(text)
		if err != nil {
			return all, fmt.Errorf("hostSubnets[%d]: %w", i, err)
		}
		all[network] = struct{}{}
	}
	return all, nil
}

// PlanSpec returns the part of a pool's spec that its addresses follow from.
func PlanSpec(o *v1.BCSNetPool) ipam.PlanSpec {
	return ipam.PlanSpec{
		Net: o.Spec.Net, Mask: int(o.Spec.Mask), Gateway: o.Spec.Gateway,
		Available: o.Spec.AvailableIPs, Exclude: o.Spec.ExcludeIPs,
	}
}

func link(o *v1.BCSNetPool) (ipam.Link, error) {
	l := ipam.Link{VLAN: int(o.Spec.VLAN), MTU: int(o.Spec.MTU)}
	for i, r := range o.Spec.Routes {
		dst, err := netip.ParsePrefix(r.Dst)
		if err != nil {
			return l, fmt.Errorf("routes[%d]: %q is not a CIDR", i, r.Dst)
		}
		route := ipam.Route{Dst: dst}
		if r.GW != "" {
			if route.GW, err = ipaddr.ParseAddr(r.GW); err != nil {
				return l, fmt.Errorf("routes[%d]: gw: %w", i, err)
			}
		}
		l.Routes = append(l.Routes, route)
	}
	if d := o.Spec.DNS; d != nil {
		l.DNS = &ipam.DNS{Nameservers: d.Nameservers, Domain: d.Domain, Search: d.Search, Options: d.Options}
	}
	return l, nil
}

// Materialized returns the addresses of a pool that get an object before anybody uses them. Addresses written
// singly always do; those of ranges and CIDRs where ranged says so.
func Materialized(o *v1.BCSNetPool, p ipam.Plan) (addrs []netip.Addr, ranged bool) {
	size := ipaddr.SizeOfSet(p.Ranged)
	ranged = size <= v1.MaterializeAutoLimit
	switch o.Spec.Materialize {
	case v1.MaterializeAlways:
		ranged = size <= v1.MaterializeAlwaysLimit
	case v1.MaterializeOnDemand:
		ranged = false
	case v1.MaterializeAuto:
	}
	return p.Addresses(ranged), ranged
}

package store

import (
	"fmt"
	"net/netip"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// PoolHosts converts only the fields that say which hosts may draw from a pool, which costs less than Pool. Invalid
// parts of the spec are left out. Without the nodes, the hosts of the host selector are not known.
func PoolHosts(o *v1.BCSNetPool) ipam.Pool {
	p := ipam.Pool{Name: o.Name}
	_ = readHosts(o, &p) // the error is the pool's Problem
	return p
}

// readHosts reads the fields that say which hosts may draw from a pool. With an error, it returns the entries before
// the invalid one.
func readHosts(o *v1.BCSNetPool, p *ipam.Pool) error {
	p.Hosts = make(map[netip.Addr]struct{}, len(o.Spec.Hosts))
	p.HostSubnets = make(ipam.Networks, len(o.Spec.HostSubnets))
	for i, h := range o.Spec.Hosts {
		a, err := ipaddr.ParseAddr(h)
		if err != nil {
			return fmt.Errorf("hosts[%d]: %w", i, err)
		}
		p.Hosts[a] = struct{}{}
	}
	for i, text := range o.Spec.HostSubnets {
		network, err := ipaddr.ParseNetwork(text)
		if err != nil {
			return fmt.Errorf("hostSubnets[%d]: %w", i, err)
		}
		p.HostSubnets[network] = struct{}{}
	}
	if o.Spec.HostSelector == nil {
		return nil
	}
	var err error
	if p.HostSelector, err = Selector(o.Spec.HostSelector); err != nil {
		return fmt.Errorf("hostSelector: %w", err)
	}
	return nil
}

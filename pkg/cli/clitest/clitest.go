// Package clitest creates the pools and leases that tests of several commands share.
package clitest

import (
	"net/netip"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Pool returns pool blue as the allocator knows it, with the host 10.0.0.11.
func Pool(t testing.TB, cidr, gateway string, available ...string) ipam.Pool {
	t.Helper()
	subnet := netip.MustParsePrefix(cidr)
	plan, err := ipam.NewPlan(ipam.PlanSpec{
		Net: subnet.Addr().String(), Mask: subnet.Bits(), Gateway: gateway, Available: available,
	})
	if err != nil {
		t.Fatal(err)
	}
	return ipam.Pool{Name: "blue", Plan: plan, Hosts: map[netip.Addr]struct{}{netip.MustParseAddr("10.0.0.11"): {}}}
}

// Active returns the lease of pod default/web-0 in pool blue. If host is empty, its host is unknown.
func Active(addr, host string) lease.Lease {
	l := lease.Lease{Addr: netip.MustParseAddr(addr), State: lease.Active, Params: lease.Params{Pool: "blue"}}
	l.Namespace, l.PodName = "default", "web-0"
	if host != "" {
		l.Host = netip.MustParseAddr(host)
	}
	return l
}

// Reserved returns the lease of an address of pool blue that an operator set aside.
func Reserved(addr string) lease.Lease {
	return lease.Lease{Addr: netip.MustParseAddr(addr), State: lease.Reserved, Params: lease.Params{Pool: "blue"}}
}

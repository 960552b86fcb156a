package store

import (
	"errors"
	"fmt"
	"net/netip"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Pool converts a BCSNetPool. An error in its spec is returned as the pool's Problem; such a pool keeps its name and
// serves nothing.
func Pool(o *v1.BCSNetPool) ipam.Pool {
	p := ipam.Pool{
		Name: o.Name, Created: o.CreationTimestamp.Time, Generation: o.Generation,
		Parent: o.Spec.Parent, Carved: Carved(o), BlockSize: int(o.Spec.BlockSize), AutoAssign: o.Spec.AutoAssign,
		Network: o.Spec.Network, Priority: o.Spec.Priority, MaxPerHost: int(o.Spec.MaxPerHost),
		MaxPerNamespace: int(o.Spec.MaxPerNamespace), Quotas: quotas(o),
		Order:    ipam.Order(o.Spec.AllocationOrder),
		Cordoned: o.Spec.Cordoned, Terminating: o.DeletionTimestamp != nil,
		Namespaces: map[string]struct{}{},
		NotDefault: o.Spec.Default != nil && !*o.Spec.Default,
	}
	p.Carving = p.SplitLate()
	if o.Spec.Cooldown != nil {
		p.Cooldown = o.Spec.Cooldown.Duration
	}
	if o.Spec.ReclaimAfter != nil {
		p.ReclaimAfter = o.Spec.ReclaimAfter.Duration
	}
	for _, ns := range o.Spec.Namespaces {
		p.Namespaces[ns] = struct{}{}
	}
	var err error
	if s := o.Spec.NamespaceSelector; s != nil {
		if p.NamespaceSelector, err = Selector(s); err != nil {
			p.Problem = "namespaceSelector: " + err.Error()
			return p
		}
	}
	if err = readHosts(o, &p); err != nil {
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

// Carved returns the addresses that the parent has handed over to a group, or that a split pool has handed over to its
// blocks; nil for none.
func Carved(o *v1.BCSNetPool) *netipx.IPSet {
	if o.Spec.Parent == "" && o.Spec.BlockSize == 0 || len(o.Status.Carved) == 0 {
		return nil
	}
	ranges := make([]netipx.IPRange, 0, len(o.Status.Carved))
	for _, text := range o.Status.Carved {
		if r, err := ipaddr.ParseRange(text); err == nil { // text that cannot be parsed was not written by us
			ranges = append(ranges, r)
		}
	}
	return ipaddr.SetOf(ranges...)
}

// Known reports whether a pool in the index equals an object. Changes of the status that do not affect what the pool
// serves are ignored.
func Known(p ipam.Pool, o *v1.BCSNetPool) bool {
	if p.Generation != o.Generation || !p.Created.Equal(o.CreationTimestamp.Time) {
		return false
	}
	carved := Carved(o)
	return carved == p.Carved || carved != nil && p.Carved != nil && carved.Equal(p.Carved)
}

// quotas maps namespaces to their limits of a pool's addresses; nil if there are none.
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

// PlanSpec returns the part of a pool's spec that determines its addresses.
func PlanSpec(o *v1.BCSNetPool) ipam.PlanSpec {
	return ipam.PlanSpec{
		Net: o.Spec.Net, Mask: int(o.Spec.Mask), Gateway: o.Spec.Gateway,
		Available: o.Spec.AvailableIPs, Exclude: o.Spec.ExcludeIPs,
	}
}

func link(o *v1.BCSNetPool) (lease.Link, error) {
	l := lease.Link{VLAN: int(o.Spec.VLAN), MTU: int(o.Spec.MTU)}
	for i, r := range o.Spec.Routes {
		dst, err := netip.ParsePrefix(r.Dst)
		if err != nil {
			return l, fmt.Errorf("routes[%d]: %q is not a CIDR", i, r.Dst)
		}
		route := lease.Route{Dst: dst}
		if r.GW != "" {
			if route.GW, err = ipaddr.ParseAddr(r.GW); err != nil {
				return l, fmt.Errorf("routes[%d]: gw: %w", i, err)
			}
		}
		l.Routes = append(l.Routes, route)
	}
	if d := o.Spec.DNS; d != nil {
		l.DNS = &lease.DNS{Nameservers: d.Nameservers, Domain: d.Domain, Search: d.Search, Options: d.Options}
	}
	return l, nil
}

// Materialized returns the addresses of a pool that get an object before they are used. Addresses listed singly always
// do; those of ranges and CIDRs only if ranged is true. Objects of a pool that is split into blocks are created on
// demand, however many they are.
func Materialized(o *v1.BCSNetPool, p ipam.Plan) (addrs []netip.Addr, ranged bool) {
	if o.Spec.BlockSize > 0 {
		return nil, false
	}
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

// selector is a Kubernetes label selector in the form that the index needs.
type selector struct{ labels.Selector }

// Matches reports whether the selector matches some labels.
func (s selector) Matches(of map[string]string) bool { return s.Selector.Matches(labels.Set(of)) }

// Selector parses a label selector. With an error, it returns a selector that matches nothing. An empty selector, which
// matches everything in Kubernetes, is an error.
func Selector(s *metav1.LabelSelector) (ipam.Selector, error) {
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return selector{labels.Nothing()}, errors.New("is empty")
	}
	read, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return selector{labels.Nothing()}, err
	}
	return selector{read}, nil
}

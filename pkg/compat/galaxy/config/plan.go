package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Wanted is the pool of an entry.
type Wanted struct {
	Name  string
	Entry Entry
	// Pool is the existing pool; nil if it must be created.
	Pool *v1.BCSNetPool
}

// Plan contains the pools for a document, and the pools of earlier documents whose entries were removed.
type Plan struct {
	Wanted []Wanted
	// Gone are the pools whose entries were removed from the document.
	Gone []*v1.BCSNetPool
}

// Make assigns a pool to every entry. Pools are matched by name, which is derived from the subnet. If a subnet has
// several pools, an entry keeps the one with which it shares the most addresses, so that leases stay in place when
// entries change their order, addresses, gateway, VLAN or node subnets. taken has the names of pools that were created
// otherwise.
func Make(entries []Entry, ours []*v1.BCSNetPool, taken map[string]bool) Plan {
	p := Plan{Wanted: make([]Wanted, len(entries))}
	used := map[string]bool{}
	for _, m := range matches(entries, ours) {
		if w := &p.Wanted[m.entry]; w.Pool == nil && !used[m.pool.Name] {
			w.Name, w.Pool = m.pool.Name, m.pool
			used[m.pool.Name] = true
		}
	}
	for _, o := range ours {
		if !used[o.Name] {
			p.Gone = append(p.Gone, o)
		}
		used[o.Name] = true
	}
	for i := range p.Wanted {
		w := &p.Wanted[i]
		if w.Entry = entries[i]; w.Pool != nil {
			continue
		}
		w.Name = baseName(w.Entry.Subnet)
		for n := 2; used[w.Name] || taken[w.Name]; n++ {
			w.Name = baseName(w.Entry.Subnet) + "-" + strconv.Itoa(n)
		}
		used[w.Name] = true
	}
	return p
}

// match is a pair of an entry and a pool of its subnet.
type match struct {
	entry  int
	pool   *v1.BCSNetPool
	shared uint64
	// same reports whether the node subnets equal those of the entry.
	same bool
}

// matches returns the pairs of each subnet, the best first.
func matches(entries []Entry, ours []*v1.BCSNetPool) (all []match) {
	for i, e := range entries {
		for _, o := range ours {
			if !isName(o.Name, e.Subnet) {
				continue
			}
			shared := ipaddr.Intersect(ipaddr.SetOf(rangesOf(o)...), ipaddr.SetOf(e.Ranges...))
			all = append(all, match{i, o, ipaddr.SizeOfSet(shared), slices.Equal(o.Spec.HostSubnets,
				textsOf(e.NodeSubnets))})
		}
	}
	slices.SortStableFunc(all, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.shared, a.shared), cmp.Compare(truth(b.same), truth(a.same)),
			cmp.Compare(a.entry, b.entry), cmp.Compare(a.pool.Name, b.pool.Name))
	})
	return all
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// baseName returns the name of the first pool of a subnet, as in floatingip-10.0.70.0-24. Further pools have a number
// appended.
func baseName(subnet netip.Prefix) string {
	return fmt.Sprintf("floatingip-%s-%d", ipaddr.ObjectName(subnet.Addr()), subnet.Bits())
}

// isName reports whether a pool has one of the names of a subnet.
func isName(name string, subnet netip.Prefix) bool {
	rest, ok := strings.CutPrefix(name, baseName(subnet))
	if !ok || rest == "" {
		return ok
	}
	number, ok := strings.CutPrefix(rest, "-")
	_, err := strconv.ParseUint(number, 10, 32)
	return ok && err == nil
}

// Set writes an entry into a pool's spec. Fields that entries do not have, such as priority, hosts or cooldown, stay.
func (e Entry) Set(s *v1.BCSNetPoolSpec) {
	s.Net, s.Mask = e.Subnet.Addr().String(), int32(e.Subnet.Bits())
	s.Gateway, s.VLAN = e.Gateway.String(), int32(e.VLAN)
	s.HostSubnets = textsOf(e.NodeSubnets)
	s.AvailableIPs = nil
	for _, r := range e.Ranges {
		s.AvailableIPs = append(s.AvailableIPs, spell(r))
	}
}

// Retire removes from the pool of a removed entry the addresses that other entries have now. The other addresses stay:
// those in use belong to the pool until they are released.
func Retire(o *v1.BCSNetPool, entries []Entry) {
	before := ipaddr.SetOf(rangesOf(o)...)
	set := before
	for _, e := range entries {
		set = ipaddr.Subtract(set, ipaddr.SetOf(e.Ranges...))
	}
	if set.Equal(before) {
		return
	}
	o.Spec.AvailableIPs = nil
	for _, r := range set.Ranges() {
		o.Spec.AvailableIPs = append(o.Spec.AvailableIPs, spell(r))
	}
}

// rangesOf returns the addresses of a pool. Entries that cannot be parsed are skipped.
func rangesOf(o *v1.BCSNetPool) (all []netipx.IPRange) {
	for _, text := range o.Spec.AvailableIPs {
		if r, err := ipaddr.ParseRange(text); err == nil {
			all = append(all, r)
		}
	}
	return all
}

func textsOf(all []netip.Prefix) (out []string) {
	for _, p := range all {
		out = append(out, p.String())
	}
	return out
}

package doctor

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// contested returns the leases with a report that another machine answers for their addresses.
func (f *facts) contested() (all ipam.Contested) {
	for _, l := range f.Leases {
		if l.Conflict != nil {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) })
	return all
}

// addressesQuarantined finds addresses that are not allocated for a time, because another machine answered for them.
func addressesQuarantined(f *facts) (out []Finding) {
	for _, l := range f.contested() {
		if !l.IsQuarantined() {
			continue
		}
		out = append(out, Finding{
			Object: ip(l.Addr), Pools: []string{l.Pool}, Fix: "bcsnetctl ip release " + l.Addr.String(),
			Cause: fmt.Sprintf("%s answered for it %s ago, by the report of host %s; nobody gets it until %s",
				l.Conflict.MAC,
				ago(l.Conflict.At, f.Now), l.Conflict.Host, l.Conflict.Until.UTC().Format(time.RFC3339)),
		})
	}
	return out
}

// proxyARP finds machines that answer for several addresses within an hour, and pools with the largest allowed number
// of quarantined addresses.
func proxyARP(f *facts) (out []Finding) {
	all := f.contested()
	macs, pools := map[string]struct{}{}, map[string]struct{}{}
	for _, l := range all {
		macs[l.Conflict.MAC], pools[l.Pool] = struct{}{}, struct{}{}
	}
	for _, mac := range slices.Sorted(maps.Keys(macs)) {
		addrs := all.By(mac, f.Now)
		if len(addrs) < ipam.ProxyARPAddresses {
			continue
		}
		out = append(out, Finding{
			Object: Object{"mac", mac}, Pools: poolsOf(all, addrs), Fix: "bcsnetctl ip describe " + addrs[0].String(),
			Cause: fmt.Sprintf("it answered for %d addresses within an hour: %s", len(addrs), spell(addrs)),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		p := f.pools[name]
		if p == nil || !p.Valid() {
			continue
		}
		addrs := all.QuarantinedIn(name, f.Now)
		if len(addrs) < ipam.MaxQuarantines(ipaddr.SizeOfSet(p.Plan.Usable)) {
			continue
		}
		out = append(out, Finding{
			Object: Object{"pool", name}, Pools: []string{name}, Fix: "bcsnetctl ip describe " + addrs[0].String(),
			Cause: fmt.Sprintf("%d of its addresses were quarantined within an hour: %s", len(addrs), spell(addrs)),
		})
	}
	return out
}

func spell(addrs []netip.Addr) string { return ipaddr.FormatSet(ipaddr.SetOfAddrs(addrs...)) }

// poolsOf returns the pools of some addresses without duplicates.
func poolsOf(all ipam.Contested, addrs []netip.Addr) (names []string) {
	for _, l := range all {
		if slices.Contains(addrs, l.Addr) && !slices.Contains(names, l.Pool) {
			names = append(names, l.Pool)
		}
	}
	slices.Sort(names)
	return names
}

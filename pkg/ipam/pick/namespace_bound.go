package pick

import (
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// overQuota returns a namespace that another address of a pool may not count for; empty if there is none. a is the
// address where it is known already: what counts for the namespace does so still. chosen are those that the request
// gets beside it. An operator who names the pool is not bound by it.
func (x *bounds) overQuota(
	p *memory.PoolState, w ipam.PickRequest, a netip.Addr, chosen []memory.Choice,
) (namespace string) {
	if !p.HasQuotas() || w.ByHand() || failpoint.Broken("quota") {
		return ""
	}
	var paid ledger.Charges
	if a.IsValid() {
		paid = x.state.ChargesOf(a, x.state.Leases.Record(a))
	}
	for _, ns := range w.ChargedTo() {
		limit, bounded := p.Quota(ns)
		if ns == "" || !bounded || paid.Has(ledger.Charge{Pool: p.CountedAs(), Namespace: ns}) {
			continue
		}
		if n, coming := x.inNamespace(p, w, ns, chosen); n+coming >= limit {
			return ns
		}
	}
	return ""
}

// inNamespace returns how many addresses of a pool count for a namespace, and how many more are to: those that were
// chosen for the request, and those that are expected.
func (x *bounds) inNamespace(
	p *memory.PoolState, w ipam.PickRequest, namespace string, chosen []memory.Choice,
) (n, coming int) {
	at := ledger.Charge{Pool: p.CountedAs(), Namespace: namespace}
	counted := func(a netip.Addr) bool {
		c := x.state.ChargesOf(a, x.state.Leases.Record(a))
		return c.Has(at)
	}
	for _, c := range chosen {
		if c.Pool.Home() == p.Home() && !counted(c.Addr) {
			coming++
		}
	}
	if w.ExpectedIn != nil {
		for _, a := range w.ExpectedIn(namespace, p.CountedAs()) {
			if !counted(a) && !slices.ContainsFunc(chosen, func(c memory.Choice) bool { return c.Addr == a }) {
				coming++
			}
		}
	}
	return x.state.Usage.Charged[p.CountedAs()][namespace], coming
}

// quotaExceeded refuses an address of a pool that a namespace may have no more of.
func (x *bounds) quotaExceeded(
	p *memory.PoolState, w ipam.PickRequest, namespace string, chosen []memory.Choice,
) *ipam.Refusal {
	share := x.quotaShare(p, w, namespace, chosen)
	return ipam.RefuseFacts(ipam.ReasonQuotaExceeded, explain.Facts{
		Kind: explain.QuotaExceeded, Who: w.Who, Namespace: namespace, Pool: p.Name, Whole: p.CountedAs(),
		Share: share,
	})
}

// quotaShares returns how many addresses of a pool count for the namespaces of a request, where that is bounded.
func (x *bounds) quotaShares(p *memory.PoolState, w ipam.PickRequest) (all []explain.NamespaceShare) {
	if !p.HasQuotas() || w.ByHand() {
		return nil
	}
	charged := w.ChargedTo()
	for _, ns := range charged.Distinct() {
		if _, bounded := p.Quota(ns); bounded {
			all = append(all, explain.NamespaceShare{Namespace: ns, Share: x.quotaShare(p, w, ns, nil)})
		}
	}
	return all
}

// quotaShare returns how many addresses of a pool count for a namespace, how many are on their way, and its quota.
func (x *bounds) quotaShare(
	p *memory.PoolState, w ipam.PickRequest, namespace string, chosen []memory.Choice,
) explain.Share {
	n, coming := x.inNamespace(p, w, namespace, chosen)
	limit, _ := p.Quota(namespace)
	return explain.Share{Has: n, Coming: coming, Limit: limit}
}

// leftIn returns how many more addresses of a pool may count for the namespaces of a request, none if it asks for one
// that is to be kept and its namespace keeps its share; ok is false if that is not bounded.
func (x *bounds) leftIn(p *memory.PoolState, w ipam.PickRequest) (left int, ok bool) {
	if x.overKept(p, w, netip.Addr{}) {
		return 0, true
	}
	for _, ns := range w.ChargedTo() {
		if limit, bounded := p.Quota(ns); ns != "" && bounded {
			n, coming := x.inNamespace(p, w, ns, nil)
			if room := max(0, limit-n-coming); !ok || room < left {
				left, ok = room, true
			}
		}
	}
	return left, ok
}

package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/explain"
)

// Quota is how many addresses of the pool count for a namespace at most; ok is false where that is not bounded.
func (p Pool) Quota(namespace string) (limit int, ok bool) {
	if limit, ok = p.Quotas[namespace]; ok {
		return limit, true
	}
	return p.MaxPerNamespace, p.MaxPerNamespace > 0
}

// HasQuotas reports whether the pool bounds what a namespace may have.
func (p Pool) HasQuotas() bool { return p.MaxPerNamespace > 0 || len(p.Quotas) > 0 }

// overQuota is a namespace that another address of a pool may not count for; empty where there is none. a is the address
// where it is known already: what counts for the namespace does so still. chosen are those that the request gets beside
// it. An operator who names the pool is not bound by it.
func (x *bounds) overQuota(p *poolState, w PickRequest, a netip.Addr, chosen []choice) (namespace string) {
	if !p.HasQuotas() || w.byHand() || failpoint.Broken("quota") {
		return ""
	}
	var paid charges
	if a.IsValid() {
		paid = x.chargesOf(a, x.record(a))
	}
	for _, ns := range w.chargedTo() {
		limit, bounded := p.Quota(ns)
		if ns == "" || !bounded || paid.has(charge{p.Name, ns}) {
			continue
		}
		if n, coming := x.inNamespace(p, w, ns, chosen); n+coming >= limit {
			return ns
		}
	}
	return ""
}

// inNamespace is how many addresses of a pool count for a namespace, and how many more are to: those that were chosen
// for the request, and those that are expected.
func (x *bounds) inNamespace(p *poolState, w PickRequest, namespace string, chosen []choice) (n, coming int) {
	at := charge{p.Name, namespace}
	counted := func(a netip.Addr) bool {
		c := x.chargesOf(a, x.record(a))
		return c.has(at)
	}
	for _, c := range chosen {
		if c.pool == p && !counted(c.addr) {
			coming++
		}
	}
	if w.ExpectedIn != nil {
		for _, a := range w.ExpectedIn(namespace, p.Name) {
			if !counted(a) && !slices.ContainsFunc(chosen, func(c choice) bool { return c.addr == a }) {
				coming++
			}
		}
	}
	return x.charged[p.Name][namespace], coming
}

// quotaExceeded refuses an address of a pool that a namespace may have no more of.
func (x *bounds) quotaExceeded(p *poolState, w PickRequest, namespace string, chosen []choice) *Refusal {
	share := x.quotaShare(p, w, namespace, chosen)
	return refuse(ReasonQuotaExceeded, explain.Facts{
		Kind: explain.QuotaExceeded, Who: w.Who, Namespace: namespace, Pool: p.Name, Share: share,
	})
}

// quotaShares returns how many addresses of a pool count for the namespaces of a request, where that is bounded.
func (x *bounds) quotaShares(p *poolState, w PickRequest) (all []explain.NamespaceShare) {
	if !p.HasQuotas() || w.byHand() {
		return nil
	}
	charged := w.chargedTo()
	for _, ns := range charged.list() {
		if _, bounded := p.Quota(ns); bounded {
			all = append(all, explain.NamespaceShare{Namespace: ns, Share: x.quotaShare(p, w, ns, nil)})
		}
	}
	return all
}

// quotaShare returns how many addresses of a pool count for a namespace, how many are on their way, and its quota.
func (x *bounds) quotaShare(p *poolState, w PickRequest, namespace string, chosen []choice) explain.Share {
	n, coming := x.inNamespace(p, w, namespace, chosen)
	limit, _ := p.Quota(namespace)
	return explain.Share{Has: n, Coming: coming, Limit: limit}
}

// NamespaceUse is what counts for one namespace of a pool that bounds it.
type NamespaceUse struct {
	Namespace string
	// Has is how many addresses count for the namespace, Quota how many may.
	Has, Quota int
}

// NearlyReached reports whether four of five addresses of a quota are in use, or more.
func (u NamespaceUse) NearlyReached() bool { return u.Has > 0 && u.Has*5 >= u.Quota*4 }

// Over reports whether there are more than there may be.
func (u NamespaceUse) Over() bool { return u.Has > u.Quota }

// String is "shop has 8 of 9".
func (u NamespaceUse) String() string {
	return fmt.Sprintf("%s has %d of %d", u.Namespace, u.Has, u.Quota)
}

// QuotaUse is what counts for the namespaces of a pool that bounds them, by namespace; nil for any other pool. Those that
// have a quota of their own are there also with nothing.
func (x *poolView) QuotaUse(pool string) []NamespaceUse {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if p := x.pools[pool]; p != nil {
		return p.QuotaUse(x.charged[pool])
	}
	return nil
}

// QuotaUse is Index.QuotaUse of what the namespaces have.
func (p Pool) QuotaUse(has map[string]int) (all []NamespaceUse) {
	for ns, limit := range p.Quotas {
		all = append(all, NamespaceUse{ns, has[ns], limit})
	}
	for ns, n := range has {
		if _, own := p.Quotas[ns]; !own && p.MaxPerNamespace > 0 {
			all = append(all, NamespaceUse{ns, n, p.MaxPerNamespace})
		}
	}
	slices.SortFunc(all, func(a, b NamespaceUse) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return all
}

// leftIn is how many more addresses of a pool may count for the namespaces of a request; ok is false where that is not
// bounded.
func (x *bounds) leftIn(p *poolState, w PickRequest) (left int, ok bool) {
	for _, ns := range w.chargedTo() {
		if limit, bounded := p.Quota(ns); ns != "" && bounded {
			n, coming := x.inNamespace(p, w, ns, nil)
			if room := max(0, limit-n-coming); !ok || room < left {
				left, ok = room, true
			}
		}
	}
	return left, ok
}

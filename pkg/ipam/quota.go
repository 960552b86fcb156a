package ipam

import (
	"cmp"
	"fmt"
	"slices"
)

// BoundsKept reports whether what a namespace keeps of the pool without using it is bounded by what the pool has free:
// the pool serves every namespace, and says nothing of how much this one may have.
func (p Pool) BoundsKept(namespace string) bool {
	_, quota := p.Quota(namespace)
	return !quota && namespace != "" && !p.Block && p.InDefaultChain()
}

// Quota returns how many addresses of the pool count for a namespace at most; ok is false if that is not bounded.
func (p Pool) Quota(namespace string) (limit int, ok bool) {
	if limit, ok = p.Quotas[namespace]; ok {
		return limit, true
	}
	return p.MaxPerNamespace, p.MaxPerNamespace > 0
}

// HasQuotas reports whether the pool bounds what a namespace may have.
func (p Pool) HasQuotas() bool { return p.MaxPerNamespace > 0 || len(p.Quotas) > 0 }

// NamespaceUse is what counts for one namespace of a pool that bounds it.
type NamespaceUse struct {
	Namespace string
	// Has is the number of addresses that count for the namespace, Quota the number that may.
	Has, Quota int
}

// NearlyReached reports whether four of five addresses of a quota are in use, or more.
func (u NamespaceUse) NearlyReached() bool { return u.Has > 0 && u.Has*5 >= u.Quota*4 }

// Over reports whether there are more than there may be.
func (u NamespaceUse) Over() bool { return u.Has > u.Quota }

// String returns "shop has 8 of 9".
func (u NamespaceUse) String() string {
	return fmt.Sprintf("%s has %d of %d", u.Namespace, u.Has, u.Quota)
}

// QuotaUse compares what the namespaces have with the quotas of the pool; see Index.QuotaUse.
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

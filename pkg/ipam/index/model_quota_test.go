package index

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// counted are the addresses of a pool that count for a namespace: in use by its pods, of its claims, missing, or being
// given.
func (m *model) counted(pool, namespace string, known map[netip.Addr]lease.Lease) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for _, leases := range []map[netip.Addr]lease.Lease{known, m.lost} {
		for a, l := range leases {
			// A kept address counts for the namespace of its last holder, too.
			inUse := (l.State == lease.Active || l.IsRetained()) && l.Namespace == namespace
			ofClaim := l.State != lease.Available && strings.HasPrefix(l.Claim, namespace+"/")
			if l.Pool == pool && (inUse || ofClaim) {
				all[a] = true
			}
		}
	}
	for a, h := range m.holds {
		if h.Pool == pool && slices.Contains(h.Charged[:], namespace) {
			all[a] = true
		}
	}
	return all
}

// overQuota is the rule of quotas: neither the namespace of the pod nor that of its claim gets more of a pool.
func (m *model) overQuota(p ipam.Pool, w ipam.PickRequest, known map[netip.Addr]lease.Lease, picks []string) bool {
	return m.overQuotaWith(p, w, netip.Addr{}, known, picks)
}

// overQuotaWith is overQuota where the address is known: one that counts for the namespace already is no more.
func (m *model) overQuotaWith(
	p ipam.Pool, w ipam.PickRequest, a netip.Addr, known map[netip.Addr]lease.Lease, picks []string,
) bool {
	for _, ns := range []string{w.Namespace, lease.ClaimNamespace(w.Claim)} {
		limit, own := p.Quotas[ns]
		if !own {
			limit = p.MaxPerNamespace
		}
		if ns == "" || !own && limit == 0 {
			continue
		}
		all := m.counted(p.Name, ns, known)
		for _, pick := range picks {
			if pool, a, _ := strings.Cut(pick, " "); pool == p.Name {
				all[ip(a)] = true
			}
		}
		if len(all) >= limit && !all[a] {
			return true
		}
	}
	return false
}

func (m *machine) checkQuotas(t *rapid.T, known map[netip.Addr]lease.Lease) {
	for name, p := range m.model.pools {
		want := map[string]ipam.NamespaceUse{}
		for _, ns := range []string{"shop", "bank"} {
			n := len(m.model.counted(name, ns, known))
			if limit, own := p.Quotas[ns]; own {
				want[ns] = ipam.NamespaceUse{Namespace: ns, Has: n, Quota: limit}
			} else if p.MaxPerNamespace > 0 && n > 0 {
				want[ns] = ipam.NamespaceUse{Namespace: ns, Has: n, Quota: p.MaxPerNamespace}
			}
		}
		var all []ipam.NamespaceUse
		for _, ns := range slices.Sorted(maps.Keys(want)) {
			all = append(all, want[ns])
		}
		if diff := cmp.Diff(all, m.x.Pools.QuotaUse(name), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("quotas of pool %s (-model +index):\n%s", name, diff)
		}
	}
}

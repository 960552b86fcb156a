package importer

import (
	"slices"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// planPools plans the pools that are missing here, and adds them to the index. They are cordoned: they allocate nothing
// until the leases are taken over and somebody uncordons them. A pool whose addresses a pool here has is not made.
func (m *maker) planPools() {
	for _, o := range m.Pools {
		o.Spec.Cordoned, o.Labels = true, m.label()
		p := store.Pool(&o)
		if here, exists := m.Index.Pools.Get(p.Name); exists {
			if here.Terminating {
				m.conflict("pool "+p.Name, "the pool of its name here is being deleted: run it again when it is gone")
			}
			continue
		}
		if p.Problem != "" {
			m.conflict("pool "+p.Name, "it cannot be made: %s", p.Problem)
			continue
		}
		if other := m.sharesAddresses(p); other != "" {
			m.plan.Left = append(m.plan.Left, Remark{"pool " + p.Name, "pool " + other + " here has addresses of it"})
			continue
		}
		m.Index.Pools.SetPool(p)
		m.plan.Pools = append(m.plan.Pools, o)
	}
}

// sharesAddresses names the first pool here that has an address of the pool; empty for none.
func (m *maker) sharesAddresses(p ipam.Pool) string {
	ranges := p.Plan.Usable.Ranges()
	all := m.Index.Pools.All()
	if i := slices.IndexFunc(all, func(o ipam.Pool) bool {
		return o.Name != p.Parent && o.Plan.Usable != nil && ipaddr.Meet(o.Plan.Usable.Ranges(), ranges)
	}); i >= 0 {
		return all[i].Name
	}
	return ""
}

// Pool returns a pool of a name without a spec, for readers.
func Pool(name string) v1.BCSNetPool {
	o := v1.BCSNetPool{}
	o.APIVersion, o.Kind, o.Name = v1.GroupVersion.String(), "BCSNetPool", name
	return o
}

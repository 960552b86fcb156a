package importer

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// planPools plans the pools that are missing here, and adds them to the index. They are cordoned: they allocate nothing
// until the leases are taken over and somebody uncordons them. A pool whose addresses a pool here has is not made.
func (m *maker) planPools() {
	for _, o := range m.Pools {
		stored := m.Stored[PoolObject(o.Name)]
		if here := m.Here[o.Name]; here != nil && stored != nil {
			m.planPoolHere(here, o)
			continue
		}
		if stored != nil {
			m.restores(o)
		}
		if stored == nil {
			o.Labels = m.label()
		}
		o.Spec.Cordoned = true
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

// planPoolHere compares a pool of a backup with the one here, which stays. A restore that broke off has left it
// cordoned.
func (m *maker) planPoolHere(here *v1.BCSNetPool, then v1.BCSNetPool) {
	if _, restoring := here.Annotations[v1.RestoringAnnotation]; restoring {
		m.restores(then)
		then.Spec.Cordoned = here.Spec.Cordoned
	}
	m.compare(PoolObject(here.Name), here.Spec, then.Spec)
}

// restores plans what becomes of a pool of a backup when its leases are made.
func (m *maker) restores(then v1.BCSNetPool) {
	if then.Spec.Cordoned {
		m.plan.Closed = append(m.plan.Closed, then.Name)
	} else {
		m.plan.Uncordon = append(m.plan.Uncordon, then.Name)
	}
}

// planReported finds the addresses that running pods report and that nobody has after a restore.
func (m *maker) planReported() {
	held := map[netip.Addr]bool{}
	for _, l := range m.plan.Leases {
		held[l.Addr] = l.State != lease.Available
	}
	m.plan.Reported = map[string]netip.Addr{}
	for a := range m.reporters {
		pool, served := m.Index.Pools.OwnerOf(a)
		now, _ := m.Index.Leases.Get(a)
		if !served || held[a] || now.State != lease.Available {
			continue
		}
		if first, some := m.plan.Reported[pool]; !some || a.Less(first) {
			m.plan.Reported[pool] = a
		}
	}
}

// compare notes which fields of an object here differ from those in a backup.
func (m *maker) compare(object string, here, then any) {
	var fields [2]map[string]any
	for i, spec := range []any{here, then} {
		text, err := json.Marshal(spec)
		if err == nil {
			err = json.Unmarshal(text, &fields[i])
		}
		if err != nil {
			return // what was read as JSON can be written so
		}
	}
	var differ []string
	for name := range fields[0] {
		if !reflect.DeepEqual(fields[0][name], fields[1][name]) {
			differ = append(differ, name)
		}
	}
	for name := range fields[1] {
		if _, both := fields[0][name]; !both {
			differ = append(differ, name)
		}
	}
	if len(differ) > 0 {
		slices.Sort(differ)
		m.plan.Left = append(m.plan.Left,
			Remark{object, "it is here and stays; the backup has another " + strings.Join(differ, ", ")})
	}
}

// sharesAddresses names the first pool here that has an address of the pool; empty for none. The pools of a backup were
// side by side before.
func (m *maker) sharesAddresses(p ipam.Pool) string {
	ranges := p.Plan.Usable.Ranges()
	all := m.Index.Pools.All()
	if i := slices.IndexFunc(all, func(o ipam.Pool) bool {
		return o.Name != p.Parent && m.Stored[PoolObject(o.Name)] == nil && o.Plan.Usable != nil &&
			ipaddr.Meet(o.Plan.Usable.Ranges(), ranges)
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

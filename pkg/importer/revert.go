package importer

import (
	"fmt"
	"slices"
	"time"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Here has what a reversal is planned from. Everything that it needs to know of the import is on the objects.
type Here struct {
	// System is that of the import.
	System string
	// Pools and Claims are all of this system; Leases are all that are held.
	Pools  []*v1.BCSNetPool
	Claims []*v1.BCSNetIPClaim
	Leases []lease.Lease
	// Table reports whether the import was that of a table, whose addresses no pod has: they become free.
	Table bool
	Now   time.Time
	// By names who takes the import back, for the history of addresses.
	By string
}

// Reversal lists what takes an import back, in this order.
type Reversal struct {
	// Cordon are the imported pools that still allocate.
	Cordon []string
	// Leases are those that change, as they are now; Here.Back says what becomes of them.
	Leases []lease.Lease
	// Claims and Pools are deleted.
	Claims []*v1.BCSNetIPClaim
	Pools  []*v1.BCSNetPool
	// Stay has the addresses that came into use through this system since.
	Stay []Staying
	// Reserved is the number of addresses that stay reserved because they are in pools that the import did not make.
	Reserved int
}

// Staying is an object that stays, and why. Holder names who has the address; empty if nobody has it in use.
type Staying struct {
	Remark

	Holder string
}

// staying returns an address that stays.
func staying(l lease.Lease, why string) Staying {
	s := Staying{Remark: Remark{"BCSNetIP " + l.Addr.String(), why}}
	if l.State == lease.Active {
		s.Holder = l.Who()
	}
	return s
}

// Empty reports whether there is nothing to do.
func (r Reversal) Empty() bool {
	return len(r.Cordon) == 0 && len(r.Leases) == 0 && len(r.Claims) == 0 && len(r.Pools) == 0
}

// givenBack ends the reason of an address that an import had taken over.
const givenBack = ": returned to it"

// Back returns what becomes of an imported address; ok is false for any other. It is reserved, because the other system
// has it: were it free, a pool could allocate it. An address of a table becomes free.
func (h Here) Back(l lease.Lease) (next lease.Lease, ok bool) {
	change := h.Change(lease.VerbReserve)
	switch {
	case l.Deleting:
		return l, false
	case h.Table && asideBy(h.System, l):
		change.Verb = lease.VerbUnreserve
		return lease.Free(l, h.Now, change)
	case HeldByImport(h.System, l), stillThere(h.System, l),
		l.IsRetained() && (reservedBy(h.System, l) || h.made(l.Claim)):
		next, _ = lease.Free(l, h.Now, lease.Change{})
		return lease.Reserve(next, l.Params, h.Now, change)
	}
	return l, false
}

// made reports whether the import made the claim of a name.
func (h Here) made(claim string) bool {
	return slices.ContainsFunc(h.Claims, func(c *v1.BCSNetIPClaim) bool {
		return c.Labels[v1.ImportedLabel] == h.System && c.Namespace+"/"+c.Name == claim
	})
}

// Revert plans how an import is taken back. What a pod got through this system stays with it, and so do the pool and
// the claim of such an address, until a later reversal.
func Revert(h Here) (r Reversal) {
	pools, claims := map[string]string{}, map[string]string{} // why they stay; empty for those that go
	for _, p := range h.Pools {
		if p.Labels[v1.ImportedLabel] == h.System {
			pools[p.Name] = ""
		}
	}
	for _, c := range h.Claims {
		if c.Labels[v1.ImportedLabel] == h.System {
			claims[c.Namespace+"/"+c.Name] = ""
		}
	}
	keep := func(l lease.Lease, why string) {
		_, imported := pools[l.Pool]
		_, claimed := claims[l.Claim]
		if !imported && !claimed {
			return
		}
		r.Stay = append(r.Stay, staying(l, why))
		if imported {
			pools[l.Pool] = l.Addr.String() + " of it stays"
		}
		if claimed {
			claims[l.Claim] = l.Addr.String() + " of it stays"
		}
	}
	for _, l := range h.Leases {
		if l.State == lease.Active && !HeldByImport(h.System, l) {
			keep(l, l.Who()+" got it here since")
		}
	}
	for _, l := range h.Leases {
		_, imported := pools[l.Pool]
		switch _, back := h.Back(l); {
		case l.State == lease.Active && !back:
		case back && claims[l.Claim] != "":
			keep(l, "claim "+l.Claim+" is in use here since")
		case back:
			r.Leases = append(r.Leases, l)
			if !imported && !h.Table {
				r.Reserved++
			}
		case asideBy(h.System, l) && !imported:
			r.Reserved++
		case l.IsRetained():
			keep(l, "claim "+l.Claim+" keeps it here since")
		case l.IsSetAside() && !asideBy(h.System, l):
			keep(l, "it was set aside by hand")
		}
	}
	for _, p := range h.Pools { // an imported group goes with its parent
		if _, imported := pools[p.Spec.Parent]; !imported {
			continue
		}
		if why, too := pools[p.Name]; !too || why != "" {
			pools[p.Spec.Parent] = fmt.Sprintf("pool %s is carved from it", p.Name)
		}
	}
	h.choose(&r, pools, claims)
	return r
}

// choose adds the pools to cordon, and the pools and claims to delete. The maps have why those of the import stay.
func (h Here) choose(r *Reversal, pools, claims map[string]string) {
	for _, c := range h.Claims {
		name := c.Namespace + "/" + c.Name
		switch why, imported := claims[name]; {
		case !imported || c.DeletionTimestamp != nil:
		case why == "":
			r.Claims = append(r.Claims, c)
		default:
			r.Stay = append(r.Stay, Staying{Remark: Remark{"BCSNetIPClaim " + name, why}})
		}
	}
	for _, p := range h.Pools {
		why, imported := pools[p.Name]
		if !imported || p.DeletionTimestamp != nil {
			continue
		}
		if !p.Spec.Cordoned {
			r.Cordon = append(r.Cordon, p.Name)
		}
		if why == "" {
			r.Pools = append(r.Pools, p)
		} else {
			r.Stay = append(r.Stay, Staying{Remark: Remark{"BCSNetPool " + p.Name, why}})
		}
	}
}

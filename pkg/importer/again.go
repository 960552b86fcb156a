package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// again plans an address of a backup: it is to be as it was then, unless somebody has it here, or something happened to
// it here since. cause says why the claim that it belonged to does not take it; empty for none.
func (t target) again(then lease.Lease, cause string) {
	here := t.now.State != lease.Available && SameUse(t.now, then)
	if !here && then.State == lease.Active && then.Owner == "" && t.OnlyPodsHere && !t.podIsHere(then.Holder) {
		then, _ = lease.Release(then, t.Now, lease.Change{})
		here = t.now.State != lease.Available && SameUse(t.now, then) // an earlier restore released it
	}
	switch {
	case here:
		t.plan.Already++
		return
	case t.now.Deleting:
		t.conflict("its object here is being deleted")
		return
	case t.now.State != lease.Available:
		if then.State != lease.Available {
			t.conflict("%s, and in the backup %s", use(t.now), use(then))
		}
		return
	case then.State == lease.Available && !t.now.Updated.IsZero():
		return // what happened here counts
	case cause != "" && then.State != lease.Active:
		t.plan.Left = append(t.plan.Left, Remark{t.row.Object, cause})
		return
	case then.State != lease.Available && !t.unchanged():
		return
	}
	if cause != "" { // who has the address keeps it, without the claim
		t.conflict("%s", cause)
		then.Retention = lease.Retention{}
	}
	if other, elsewhere := t.elsewhere(then); elsewhere {
		t.conflict("%s has %s here by now", then.Who(), other.Addr)
		return
	}
	then.Params, then.BoundVersion = t.params, 0
	if t.now.Version > 0 {
		then.History = t.signed(then.History)
	}
	t.add(then)
}

// signed returns a history for an object that exists: there, the API server takes no entry that names anybody but its
// writer. The reason names who it was.
func (m *maker) signed(h lease.History) lease.History {
	entries := h.Entries()
	for i, p := range entries {
		if p.By != "" && p.By != m.By {
			entries[i].By, entries[i].Reason = "", strings.TrimSuffix("by "+p.By+": "+p.Reason, ": ")
		}
	}
	return lease.NewHistory(entries)
}

// podIsHere reports whether the pod of a holder exists here: the very one where the UID is known.
func (t target) podIsHere(h lease.Holder) bool {
	pod, exists := t.pods[h.Namespace+"/"+h.PodName]
	return exists && (h.PodUID == "" || pod.UID == h.PodUID)
}

// elsewhere returns an address that the holder of a lease has here in its place: of the same family and interface, and
// one that the backup does not give it.
func (t target) elsewhere(then lease.Lease) (other lease.Lease, ok bool) {
	if then.State != lease.Active {
		return other, false
	}
	held := t.Index.Leases.ByAttachment(then.Holder)
	if then.PodUID == "" && then.Owner == "" {
		held = t.Index.Leases.ByContainer(then.ContainerID, then.IfName)
	}
	i := slices.IndexFunc(held, func(l lease.Lease) bool {
		return l.Addr != then.Addr && l.Addr.Is4() == then.Addr.Is4() && l.Slot == then.Slot && !t.backedUp(l)
	})
	if i < 0 {
		return other, false
	}
	return held[i], true
}

// backedUp reports whether the backup gives an address to whom it belongs here.
func (m *maker) backedUp(l lease.Lease) bool {
	i, found := slices.BinarySearchFunc(m.Addresses, l, func(row Address, l lease.Lease) int {
		return row.Addr.Compare(l.Addr)
	})
	return found && m.Addresses[i].Lease != nil && SameUse(l, *m.Addresses[i].Lease)
}

// SameUse reports whether an address is in the same use as it was then.
func SameUse(now, then lease.Lease) bool {
	switch {
	case now.State != then.State:
		return false
	case now.State == lease.Active:
		return now.SameAttachment(then.Holder) || now.Who() == then.Who() && now.IfName == then.IfName
	default:
		return now.Claim == then.Claim && (now.Claim != "" || now.IsQuarantined() == then.IsQuarantined())
	}
}

// use describes who has an address that is not Available.
func use(l lease.Lease) string {
	switch {
	case l.State == lease.Active:
		return l.Where() + " has it"
	case l.IsRetained():
		return fmt.Sprintf("claim %s keeps it", l.Claim)
	case l.IsQuarantined():
		return "it is quarantined"
	default:
		return "it is set aside"
	}
}

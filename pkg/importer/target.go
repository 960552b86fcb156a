package importer

import (
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// target is an address of a pool here, and the state that the import gives it: the state of the other system.
type target struct {
	*maker
	row    Address
	now    lease.Lease
	params lease.Params
	claim  string
}

func (t target) retention() lease.Retention {
	return lease.Retention{Claim: t.claim, Fixed: t.claim != ""}
}

func (t target) conflict(format string, args ...any) {
	t.maker.conflict(t.row.Object, format, args...)
}

// free returns the address if it can be taken. It cannot if somebody has it here, if it was reserved by hand, or if it
// was given up here after the other system last changed it: an import that runs again brings nothing back.
func (t target) free() (l lease.Lease, ok bool) {
	switch {
	case t.now.Deleting:
		t.conflict("its object here is being deleted")
	case t.now.State == lease.Active:
		t.conflict("%s has it here", t.now.Who())
	case asideBy(t.System, t.now):
		l, _ = lease.Free(t.now, t.Now, lease.Change{})
		return l, true
	case t.now.State == lease.Reserved && t.now.Claim != "" && t.now.Claim == t.claim:
		return t.now, t.unchanged()
	case t.now.State == lease.Reserved && t.now.Claim != "":
		t.conflict("claim %s keeps it here", t.now.Claim)
	case t.now.State == lease.Reserved:
		t.conflict("it was set aside here by hand")
	default:
		return t.now, t.unchanged()
	}
	return l, false
}

// unchanged reports whether nothing happened to the address here since the other system last changed it.
func (t target) unchanged() bool {
	if !t.now.Updated.After(t.row.Updated) {
		return true
	}
	t.plan.Left = append(t.plan.Left, Remark{"BCSNetIP " + t.now.Addr.String(), "it has changed here since"})
	return false
}

// hold plans a lease for a holder.
func (t target) hold(h lease.Holder) {
	if t.now.State == lease.Active && (t.now.SameAttachment(h) || t.now.Who() == h.Who()) {
		t.plan.Already++
		return
	}
	if l, ok := t.free(); ok {
		change := lease.Change{Verb: lease.VerbImport, By: t.By, Reason: importReason(t.System, h.ContainerID)}
		next, _ := lease.Import(l, t.params, h, t.retention(), t.since(t.row), change)
		t.add(next)
	}
}

// keepForClaim plans that the claim keeps the address. The term of an address that a pod gave up began then, as the
// released program counts; any other begins now.
func (t target) keepForClaim() {
	if t.now.Claim == t.claim && t.now.State != lease.Available {
		t.plan.Already++
		return
	}
	l, ok := t.free()
	if !ok {
		return
	}
	change := lease.Change{Verb: lease.VerbReserve, By: t.By, Reason: t.reason("bound to claim " + t.claim)}
	next, _ := lease.ReserveFor(l, t.params, t.retention(), t.Now, change)
	if t.row.Counting {
		next.Updated = t.since(t.row)
	}
	t.add(next)
}

// aside plans that nobody gets the address until somebody decides.
func (t target) aside(why string) {
	switch {
	case t.now.State == lease.Active, t.now.State == lease.Reserved:
		t.plan.Already++
		return
	case t.now.Deleting:
		t.conflict("its object here is being deleted")
		return
	case t.row.State == Kept && t.row.Updated.IsZero() && !freedByHand(t.System, t.now): // what it keeps now counts
	case !t.now.Updated.IsZero() && !t.unchanged():
		return
	}
	change := lease.Change{Verb: lease.VerbReserve, By: t.By, Reason: t.reason(why)}
	next, _ := lease.Reserve(t.now, t.params, t.Now, change)
	t.add(next)
}

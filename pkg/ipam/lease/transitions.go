package lease

import (
	"cmp"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// stay keeps the bound versions of a lease that is written again for the same holders.
func (l *Lease) stay() {
	if l.State != Active {
		return
	}
	if l.BoundVersion = l.Bound(); l.Other != nil && l.Other.BoundVersion == 0 {
		other := *l.Other
		other.BoundVersion = l.Version
		l.Other = &other
	}
}

// Bind gives the address to a holder on the terms of its claim, or moves it to another container of the same
// holder. A container keeps what it was given; another one has what its Holder says. It is refused (ok false) when
// somebody else has it, when a newer container took the holder's place, when the address is reserved for anybody but
// the holder's claim, and when its object is being deleted.
func Bind(l Lease, p Params, h Holder, s Retention, now time.Time) (next Lease, ok bool) {
	if l.Deleting && !failpoint.Broken("deleting") {
		return l, false
	}
	next = l
	next.stay()
	h.BoundVersion = 0
	if l.Conflict.Past(now) {
		next.Conflict = nil
	}
	switch l.State {
	case Available:
		next.Params = p
		h.Superseded = nil
	case Reserved:
		if !l.Admits(h, s) {
			return l, false
		}
		next.Params = p
		h.Superseded = nil
	case Active:
		if !l.movesTo(h) {
			return l, false
		}
		h.Superseded = l.Superseded
		switch h.ContainerID {
		case l.ContainerID:
			h.CNINetwork, h.BoundVersion = cmp.Or(h.CNINetwork, l.CNINetwork), l.Bound()
			h.Given = cmp.Or(l.Given, h.Given)
		case "": // who names no container does not take the address from the one that has it
			h.ContainerID, h.CNINetwork, h.BoundVersion, h.Given = l.ContainerID, l.CNINetwork, l.Bound(), l.Given
		default:
			h.Superseded = supersede(l.Superseded, l.ContainerID)
		}
	}
	next.State, next.Holder, next.Retention, next.Updated = Active, h, s, now
	next.HeldFinalizer = !failpoint.Broken("finalizer")
	return next, true
}

// Import gives an address to the holder that another system names, as Bind does, and says so in the history.
func Import(l Lease, p Params, h Holder, s Retention, since time.Time, c Change) (next Lease, ok bool) {
	if next, ok = Bind(l, p, h, s, since); ok {
		next.History = l.History.Add(Past{Until: since, Change: c})
	}
	return next, ok
}

// TakeOver gives an address that a pod of a claim holds to the pod that is in its place now: of the same claim
// and key, on the same interface. The caller has made sure that the earlier pod is no more: of two attachments, that
// neither pod is. It is refused (ok false) for everybody else, and when the object is being deleted.
func TakeOver(l Lease, p Params, h Holder, s Retention, now time.Time) (next Lease, ok bool) {
	if l.State != Active || l.Deleting || l.PodPrimaryKey == "" || h.SameAttachment(l.Holder) || !l.Admits(h, s) {
		return l, false
	}
	next = l
	next.History = l.History.Add(past(l, now, Change{}))
	h.Superseded, h.BoundVersion = nil, 0
	next.Params, next.Holder, next.Retention, next.Updated, next.HeldFinalizer = p, h, s, now, true
	next.Other, next.FromSecond = nil, false
	return next, true
}

// Renew moves StartedAt forward to a later request of the same holder. The holder and its bound version stay.
func Renew(l Lease, began time.Time) (next Lease, ok bool) {
	if l.State != Active || !began.After(l.StartedAt) {
		return l, false
	}
	l.stay()
	l.StartedAt = began
	return l, true
}

// movesTo reports whether a holder's address may move to another: within the same container, whose pod
// may have been known by another UID, or within the same attachment; never between owners, and never
// back to a container that a newer one replaced.
func (h Holder) movesTo(to Holder) bool {
	if h.Owner != to.Owner {
		return false
	}
	if h.ContainerID != "" && h.ContainerID == to.ContainerID && h.IfName == to.IfName {
		return true
	}
	return h.SameAttachment(to) && !slices.Contains(h.Superseded, to.ContainerID)
}

// supersede adds a container to the earlier ones of a lease, of which it keeps the last.
func supersede(earlier []string, id string) []string {
	if id == "" {
		return earlier
	}
	all := append(slices.Clone(earlier), id)
	return all[max(0, len(all)-MaxSuperseded):]
}

// Release gives the address up, whoever has it; the caller has checked who does. Of two attachments the one that the
// lease is seen from ends, and only the other one has the address. One that a claim keeps is Reserved for it from then
// on, with the name of the pod that had it; any other is Available, also one that was Reserved. An address that is
// Available stays as it is (changed false). The holder goes into the history.
func Release(l Lease, now time.Time, c Change) (next Lease, changed bool) {
	if l.State == Active && l.Other != nil && !failpoint.Broken("second") {
		return detach(l, now, c), true
	}
	if l.State != Active || !l.KeptOnRelease() {
		return Free(l, now, c)
	}
	next = l
	next.History = l.History.Add(past(l, now, c))
	next.State, next.Updated, next.HeldFinalizer = Reserved, l.given(now), true
	next.Holder = Holder{IfName: l.IfName, Slot: l.Slot, Namespace: l.Namespace, PodName: l.PodName}
	next.Other, next.FromSecond = nil, false
	return next, true
}

// Free makes an address Available that somebody has or that is reserved, whoever has it and whatever claim
// keeps it. Of an object that is being deleted the finalizer goes by a call of its own: without it the object
// goes at once, and the watch would show it as it was before, as if it had been lost by somebody who has it.
func Free(l Lease, now time.Time, c Change) (next Lease, changed bool) {
	if l.State == Available && !l.HeldFinalizer {
		return l, false
	}
	next = l
	if l.State == Active || c != (Change{}) {
		next.History = l.History.Add(past(l, now, c))
	}
	if c != (Change{}) && l.IsQuarantined() {
		next.Conflict = nil // somebody has seen to it
	}
	next.HeldFinalizer = l.HeldFinalizer && l.Deleting && l.State != Available
	next.State, next.Holder, next.Retention = Available, Holder{}, Retention{}
	next.Other, next.FromSecond = nil, false
	next.Updated = l.given(now)
	return next, true
}

// given returns when the address is given up. It is never the moment at which the holder got it: an address with that
// time counts as emptied by hand.
func (l Lease) given(now time.Time) time.Time {
	if now.Equal(l.Updated) {
		return now.Add(1)
	}
	return now
}

// Identify gives a lease the UID that its holder's pod really has. It is refused (ok false) where nothing changes.
func Identify(l Lease, uid string) (next Lease, ok bool) {
	if l.State != Active || l.Owner != "" || l.PodUID == uid || l.Deleting {
		return l, false
	}
	l.stay()
	l.PodUID, l.UIDNamed = uid, false
	return l, true
}

// ChangeRetention changes the terms on which somebody has an address, or on which it is kept for a claim. It is
// refused (ok false) where nothing changes, for an address that is free or set aside by hand, and for one that
// would be kept for nobody.
func ChangeRetention(l Lease, s Retention) (next Lease, ok bool) {
	switch {
	case l.Retention == s, l.State == Available:
		return l, false
	case l.State == Reserved && (l.Claim == "" || s.Claim == ""):
		return l, false
	}
	l.stay()
	l.Retention = s
	return l, true
}

// Reserve sets an address aside by hand that is free or quarantined. It is refused (ok false) when somebody has the
// address, when it is set aside or retained already, and when its object is being deleted.
func Reserve(l Lease, p Params, now time.Time, c Change) (next Lease, ok bool) {
	if l.State != Available && !l.IsQuarantined() || l.Deleting {
		return l, false
	}
	next = l
	next.State, next.Params, next.Updated, next.HeldFinalizer = Reserved, p, l.given(now), true
	next.History = l.History.Add(past(l, now, c))
	return next, true
}

// ReserveFor sets a free address aside for a claim that keeps it, before any pod asks for one. It is refused (ok false)
// where Reserve is, for a quarantined address, and for a claim that keeps nothing.
func ReserveFor(l Lease, p Params, s Retention, now time.Time, c Change) (next Lease, ok bool) {
	if l.State != Available || !s.KeptOnRelease() {
		return l, false
	}
	if next, ok = Reserve(l, p, now, c); ok {
		next.Retention = s
	}
	return next, ok
}

// Refresh gives an address the values that its pool has now, without touching who holds it.
func Refresh(l Lease, p Params) (next Lease, changed bool) {
	if l.Params == p || l.Deleting {
		return l, false
	}
	l.stay()
	l.Params = p
	return l, true
}

// Restore returns a missing lease as it is written in place of what is there now, if anything is. Where the object is
// being deleted, it keeps the lease until the holder gives the address up.
func Restore(l, now Lease) Lease {
	l.stay()
	l.Version, l.Epoch, l.Deleting, l.Foreign = now.Version, now.Epoch, now.Deleting, now.Foreign
	l.HeldFinalizer = !now.Deleting || now.HeldFinalizer // the API server adds none to an object that is being deleted
	return l
}

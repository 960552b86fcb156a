package ipam

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// State of an address.
type State uint8

// States of an address. An address without an object is Available.
const (
	Available State = iota
	Active
	Reserved
)

// String is the word that objects and answers use.
func (s State) String() string {
	switch s {
	case Active:
		return "Active"
	case Reserved:
		return "Reserved"
	default:
		return "Available"
	}
}

// DefaultIfName is the interface of requests that name none.
const DefaultIfName = "eth0"

// UsualTermination is the grace period of pods that ask for no other. A longer one is written down with the lease.
const UsualTermination = 30 * time.Second

// MaxSuperseded is how many earlier container IDs a lease remembers.
const MaxSuperseded = 4

// Params are what an address takes from its pool.
type Params struct {
	Pool    string
	Bits    int
	Gateway netip.Addr
}

// Holder is who has an address. A holder is a container of a pod, or an owner that is no pod.
type Holder struct {
	Host        netip.Addr
	ContainerID string
	IfName      string
	Namespace   string
	PodName     string
	PodUID      string
	// UIDNamed: the request that took the address named the PodUID. Any other UID was looked up, and may be that of an
	// earlier pod of the name.
	UIDNamed bool
	// Termination is the grace period of the pod in whole seconds, where it is longer than UsualTermination; else zero.
	Termination time.Duration
	Owner       string
	// Superseded are earlier containers of the same pod, newest last, at most MaxSuperseded.
	Superseded []string
	// SetSize is how many addresses the request takes together; 0 stands for one.
	SetSize int
	// Slot is which of the ranges that the request names the address is from, the first being 0. Of each it
	// takes one address, or one of each family.
	Slot int
	// StartedAt is when the request that took the address began.
	StartedAt time.Time
}

// Who names the holder: namespace/pod, or the owner.
func (h Holder) Who() string {
	switch {
	case h.Owner != "":
		return h.Owner
	case h.PodName != "":
		return h.Namespace + "/" + h.PodName
	default:
		return "container " + h.ContainerID
	}
}

// Where names the holder and the host that it is on, if it is on one.
func (h Holder) Where() string {
	if !h.Host.IsValid() {
		return h.Who()
	}
	return h.Who() + " on host " + h.Host.String()
}

// attachment is the identity that an address is held for, beside the interface: the pod's UID, or
// the owner. Empty for callers that know no more than a container ID.
func (h Holder) attachment() string {
	if h.Owner != "" {
		return "owner/" + h.Owner
	}
	return h.PodUID
}

// SameAttachment says whether two holders are the same attachment: the same interface of the same
// pod or owner, or, where one of them knows no pod UID, of the same container.
func (h Holder) SameAttachment(o Holder) bool {
	if h.IfName != o.IfName {
		return false
	}
	if a, b := h.attachment(), o.attachment(); a != "" && b != "" {
		return a == b
	}
	return h.ContainerID != "" && h.ContainerID == o.ContainerID
}

// Retention is what a lease keeps beyond its holder: the claim that it belongs to, on which terms.
type Retention struct {
	// Claim is namespace/name of the claim; empty for an address that belongs to none.
	Claim string
	// PodPrimaryKey says which pod of the claim the address is for; empty for any of them.
	PodPrimaryKey string
	// Fixed: the claim keeps the address when its holder gives it up.
	Fixed bool
	// ExpiredTime is when a kept address is given up, RFC 3339 with nanoseconds; empty for one that is
	// kept without a term.
	ExpiredTime string
}

// Retained reports whether the address stays with its claim when its holder gives it up.
func (s Retention) Retained() bool { return s.Claim != "" && s.Fixed }

// admits says whether an address that is kept so may go to a holder on these terms: of the same claim, and of
// the same pod and interface where the address is for one.
func (l Lease) admits(h Holder, s Retention) bool {
	return l.Claim != "" && l.Claim == s.Claim && (l.PodPrimaryKey == "" || l.PodPrimaryKey == s.PodPrimaryKey) &&
		(l.IfName == "" || l.IfName == h.IfName && l.Slot == h.Slot)
}

// Lease is one address as of one version of its object.
type Lease struct {
	Addr netip.Addr
	// Version is the resourceVersion of the object; 0 when there is no object.
	Version uint64
	// Epoch counts how often this process had noticed that the store was put back when it read the version: those of two
	// epochs cannot be compared.
	Epoch uint32
	State State
	Params
	Holder
	Retention
	// BoundVersion is the version with which the holder got the address, where the object was written again since;
	// 0 stands for Version.
	BoundVersion uint64
	// Updated is when the state last changed; zero when nobody ever held the address.
	Updated time.Time
	// History is who held the address before.
	History History
	// Deleting: the object has a deletionTimestamp. Such an address is never handed out.
	Deleting bool
	// HeldFinalizer: the object carries the finalizer that goes with Active and Reserved.
	HeldFinalizer bool
	// Foreign: the object holds more than this struct does (labels, fields of a newer release), so a
	// write must start from the object as it is stored.
	Foreign bool
}

// IsKept says whether a claim keeps the address and nobody has it.
func (l Lease) IsRetained() bool { return l.State == Reserved && l.Claim != "" }

// Bound is the version with which the holder got the address. Of two leases of one container it says which was
// written first, on every replica: it does not change while the holder has the address.
func (l Lease) Bound() uint64 { return cmp.Or(l.BoundVersion, l.Version) }

// CompareBound orders leases by when their holders got them. One that was bound with a version above its own is from before
// the store was put back to an older state, after which versions began lower: it comes before all that were bound since.
func CompareBound(a, b Lease) int {
	lost := func(l Lease) int {
		if l.Bound() > l.Version && !failpoint.Broken("bound") {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(lost(a), lost(b)), cmp.Compare(a.Bound(), b.Bound()))
}

// Rebuilt says whether the lease was made again from what its pod reported: it names no container, as those do that a
// container asked for.
func (l Lease) Rebuilt() bool {
	return l.State == Active && l.PodName != "" && l.ContainerID == "" && l.Owner == ""
}

// stay has a lease that is written again for its holder tell with which version that got the address.
func (l *Lease) stay() {
	if l.State == Active {
		l.BoundVersion = l.Bound()
	}
}

// Bind gives the address to a holder on the terms of its claim, or moves it to another container of the same
// holder. It is refused (ok false) when somebody else has it, when a newer container took the holder's place,
// when the address is reserved for anybody but the holder's claim, and when its object is being deleted.
func Bind(l Lease, p Params, h Holder, s Retention, now time.Time) (next Lease, ok bool) {
	if l.Deleting && !failpoint.Broken("deleting") {
		return l, false
	}
	next = l
	next.BoundVersion = 0
	switch l.State {
	case Available:
		next.Params = p
		h.Superseded = nil
	case Reserved:
		if !l.admits(h, s) {
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
			next.BoundVersion = l.Bound()
		case "": // who names no container does not take the address from the one that has it
			h.ContainerID, next.BoundVersion = l.ContainerID, l.Bound()
		default:
			h.Superseded = supersede(l.Superseded, l.ContainerID)
		}
	}
	next.State, next.Holder, next.Retention, next.Updated, next.HeldFinalizer = Active, h, s, now, !failpoint.Broken("finalizer")
	return next, true
}

// TakeOver gives an address that a pod of a claim holds to the pod that is in its place now: of the same claim
// and key, on the same interface. The caller has made sure that the earlier pod is no more. It is refused
// (ok false) for everybody else, and when the object is being deleted.
func TakeOver(l Lease, p Params, h Holder, s Retention, now time.Time) (next Lease, ok bool) {
	if l.State != Active || l.Deleting || l.PodPrimaryKey == "" || h.SameAttachment(l.Holder) || !l.admits(h, s) {
		return l, false
	}
	next = l
	next.History = l.History.Add(past(l, now, Change{}))
	h.Superseded = nil
	next.Params, next.Holder, next.Retention, next.Updated, next.HeldFinalizer, next.BoundVersion = p, h, s, now, true, 0
	return next, true
}

// Renew has a lease be for a request of its holder that began later. It is held since when it was.
func Renew(l Lease, began time.Time) (next Lease, ok bool) {
	if l.State != Active || !began.After(l.StartedAt) {
		return l, false
	}
	l.stay()
	l.StartedAt = began
	return l, true
}

// movesTo says whether a holder's address may move to another: within the same container, whose pod
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

// SameHolding says whether a lease that was read later is the same holding of the address: in use, by the same
// container, since the same time.
func (l Lease) SameHolding(later Lease) bool {
	return later.State == Active && later.ContainerID == l.ContainerID && later.PodUID == l.PodUID && later.Updated.Equal(l.Updated)
}

// Release gives the address up, whoever has it; the caller has checked who does. One that a claim keeps is
// Reserved for it from then on, with the name of the pod that had it; any other is Available, also one that was
// Reserved. An address that is Available stays as it is (changed false). The holder goes into the history.
func Release(l Lease, now time.Time, c Change) (next Lease, changed bool) {
	if l.State != Active || !l.Retained() {
		return Free(l, now, c)
	}
	next = l
	next.History = l.History.Add(past(l, now, c))
	next.State, next.Updated, next.HeldFinalizer, next.BoundVersion = Reserved, l.given(now), true, 0
	next.Holder = Holder{IfName: l.IfName, Slot: l.Slot, Namespace: l.Namespace, PodName: l.PodName}
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
	next.HeldFinalizer = l.HeldFinalizer && l.Deleting && l.State != Available
	next.State, next.Holder, next.Retention, next.Updated, next.BoundVersion = Available, Holder{}, Retention{}, l.given(now), 0
	return next, true
}

// given is when the address is given up: never the very moment at which its holder got it, by which one is told that was
// made free by hand.
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

// Reserve sets a free address aside by hand. It is refused (ok false) when somebody has the address, when
// it is reserved already, and when its object is being deleted.
func Reserve(l Lease, p Params, now time.Time, c Change) (next Lease, ok bool) {
	if l.State != Available || l.Deleting {
		return l, false
	}
	next = l
	next.State, next.Params, next.Updated, next.HeldFinalizer = Reserved, p, now, true
	next.History = l.History.Add(past(l, now, c))
	return next, true
}

// ReserveFor sets a free address aside for a claim that keeps it, before any pod asks for one. It is refused (ok false)
// where Reserve is, and for a claim that keeps nothing.
func ReserveFor(l Lease, p Params, s Retention, now time.Time, c Change) (next Lease, ok bool) {
	if !s.Retained() {
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

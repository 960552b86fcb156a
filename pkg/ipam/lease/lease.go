package lease

import (
	"cmp"
	"net/netip"
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

// String returns the word that objects and answers use.
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

// MaxSuperseded is the number of earlier container IDs that a lease remembers.
const MaxSuperseded = 4

// Params has the values that an address takes from its pool.
type Params struct {
	Pool    string
	Bits    int
	Gateway netip.Addr
}

// Holder has an address. It is a container of a pod, or an owner that is not a pod.
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
	// CNINetwork is the network configuration that the container is attached by; empty where its plugin names none.
	CNINetwork string
	// AddressNamed: the request, or an annotation of the pod, asked for this very address.
	AddressNamed bool
	// Termination is the grace period of the pod in whole seconds, where it is longer than UsualTermination; else zero.
	Termination time.Duration
	Owner       string
	// Superseded are earlier containers of the same pod, newest last, at most MaxSuperseded.
	Superseded []string
	// SetSize is the number of addresses that the request takes together; 0 stands for one.
	SetSize int
	// Slot is which of the ranges that the request names the address is from, the first being 0. Of each it
	// takes one address, or one of each family.
	Slot int
	// StartedAt is when the request that took the address began.
	StartedAt time.Time
	// BoundVersion is the version with which the holder got the address, where the object was written again since;
	// 0 stands for the version of the lease.
	BoundVersion uint64
	// Given has the settings that the answer to the container contained; empty if they are not known.
	Given Given
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

// attachment returns the identity that an address is held for, beside the interface: the pod's UID, or
// the owner. Empty for callers that know no more than a container ID.
func (h Holder) attachment() string {
	if h.Owner != "" {
		return "owner/" + h.Owner
	}
	return h.PodUID
}

// SameAttachment reports whether two holders are the same attachment: the same interface of the same
// pod or owner, or, where one of them knows no pod UID, of the same container.
func (h Holder) SameAttachment(o Holder) bool {
	if h.IfName != o.IfName {
		return false
	}
	if a, b := h.attachment(), o.attachment(); a != "" && b != "" {
		return a == b && !h.HasOtherName(o.Namespace, o.PodName)
	}
	return h.ContainerID != "" && h.ContainerID == o.ContainerID
}

// HasOtherName reports whether a holder is a pod of another name; false if either name is unknown. Two pods of
// different names can have the same UID: that of a static pod is what its kubelet says.
func (h Holder) HasOtherName(namespace, podName string) bool {
	return h.PodName != "" && podName != "" && (h.PodName != podName || h.Namespace != namespace)
}

// Retention says which claim a lease belongs to, and how long the claim keeps the address.
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

// KeptOnRelease reports whether the address stays with its claim when its holder gives it up.
func (s Retention) KeptOnRelease() bool { return s.Claim != "" && s.Fixed }

// Admits reports whether a claim's address may go to a holder with the given retention: of the same claim, and of the
// same pod and interface where the address is for one.
func (l Lease) Admits(h Holder, s Retention) bool {
	return l.Claim != "" && l.Claim == s.Claim && (l.PodPrimaryKey == "" || l.PodPrimaryKey == s.PodPrimaryKey) &&
		(l.IfName == "" || l.IfName == h.IfName && l.Slot == h.Slot)
}

// Lease is one address as of one version of its object.
type Lease struct {
	Addr netip.Addr
	// Version is the resourceVersion of the object; 0 when there is no object.
	Version uint64
	// Epoch counts how often this process had noticed that the store was put back when it read the version: those of
	// two epochs cannot be compared.
	Epoch uint32
	State State
	Params
	Holder
	Retention
	// Other is the other one of two attachments, while a virtual machine migrates live; nil for nearly all. What it
	// points to never changes. FromSecond: Holder is the second attachment of the object, and Other the first.
	Other      *Holder
	FromSecond bool
	// Updated is when the state last changed; zero when nobody ever held the address.
	Updated time.Time
	// Conflict is the last report that somebody else answers for the address; nil for nearly all. What it points to
	// never changes.
	Conflict *Conflict
	// History has the earlier holders of the address.
	History History
	// Deleting: the object has a deletionTimestamp. Such an address is never allocated.
	Deleting bool
	// HeldFinalizer: the object carries the finalizer that goes with Active and Reserved.
	HeldFinalizer bool
	// Foreign: the object holds more than this struct does (labels, fields of a newer release), so a
	// write must start from the object as it is stored.
	Foreign bool
}

// IsRetained reports whether a claim keeps the address and nobody has it.
func (l Lease) IsRetained() bool { return l.State == Reserved && l.Claim != "" }

// Bound returns the version with which the holder got the address. Of two leases of one container it says which was
// written first, on every replica: it does not change while the holder has the address.
func (l Lease) Bound() uint64 { return cmp.Or(l.BoundVersion, l.Version) }

// CompareBound orders leases by when their holders got them. A restore of the store makes versions begin lower. So a
// lease that was bound with a version above its own was bound before a restore, and it comes before all leases that
// were bound since.
func CompareBound(a, b Lease) int {
	lost := func(l Lease) int {
		if l.Bound() > l.Version && !failpoint.Broken("bound") {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(lost(a), lost(b)), cmp.Compare(a.Bound(), b.Bound()))
}

// Rebuilt reports whether the lease was made again from what its pod reported: it names no container, as those do that
// a container asked for.
func (l Lease) Rebuilt() bool {
	return l.State == Active && l.PodName != "" && l.ContainerID == "" && l.Owner == ""
}

// SameHolding reports whether a lease that was read later is the same holding of the address: in use, by the same
// container, since the same time.
func (l Lease) SameHolding(later Lease) bool {
	return later.State == Active && later.ContainerID == l.ContainerID && later.PodUID == l.PodUID &&
		later.Updated.Equal(l.Updated)
}

// IsHeldBy reports whether the attachment of a holder, of the same owner if it has one, has the address in use.
func (l Lease) IsHeldBy(h Holder) bool {
	return l.State == Active && l.Owner == h.Owner && l.SameAttachment(h)
}

// UsedBy names the holder of an address and its host; "reserved" for one that nobody uses.
func (l Lease) UsedBy() string {
	if l.State == Reserved {
		return "reserved"
	}
	return l.Where()
}

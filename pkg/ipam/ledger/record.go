package ledger

import (
	"math"
	"net/netip"
	"time"
	"unique"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Change is an entry before and after a change; nil for none. What a record says of its lease never changes, so that it
// can be read outside the lock.
type Change struct {
	Addr     netip.Addr
	Old, New *Record
}

// LeaseOf returns the lease of an entry, or of an address that has none.
func LeaseOf(a netip.Addr, r *Record) lease.Lease {
	if r == nil {
		return lease.Lease{Addr: a}
	}
	return r.Lease()
}

// Record is a lease in about 240 bytes, with its strings and without history. Values that repeat (pool, host,
// interface, namespace) are interned, and the other strings are one allocation.
type Record struct {
	Addr      netip.Addr
	Version   uint64
	Bound     uint64 // 0 = version
	Updated   int64  // Unix nanoseconds, 0 = never
	started   int64
	Params    unique.Handle[lease.Params]
	Host      unique.Handle[netip.Addr]
	attached  unique.Handle[attachedBy]
	Namespace unique.Handle[string]
	ids       string // container ID, pod UID, pod name, history, one behind the other
	extra     *extra // nil for nearly all

	// These are chains of the tables. The entry of an Available address is in byLast, by nextAttachment.
	NextAddr, NextContainer, nextAttachment *Record

	Epoch                uint32
	lenContainer, lenUID uint16
	lenName              uint8
	State                lease.State
	flags, setSize, Slot uint8
}

// attachedBy has the fields that the interfaces of very many containers have in common.
type attachedBy struct {
	ifName, cniNetwork string
	given              lease.Given
}

// extra has the fields that only few leases need.
type extra struct {
	owner      string
	superseded []string
	retention  lease.Retention
	// termination is in seconds.
	termination int32
	// other is the second attachment, nil but while a virtual machine migrates.
	other *lease.Holder
	// conflict is the last report that somebody else answers for the address.
	conflict *lease.Conflict

	nextKey *Record // chain of the index's table
}

const (
	// FlagDeleting means that the object is being deleted.
	FlagDeleting = 1 << iota
	// FlagFinalizer means that the object has the finalizer of an address in use.
	FlagFinalizer
	flagForeign
	flagPackedContainer
	flagPackedUID
	flagUIDNamed
	flagAddressNamed
)

// Pack makes the entry of a lease.
func Pack(l lease.Lease) *Record {
	if l.FromSecond {
		l = l.Turned()
	}
	podName := l.PodName[:min(len(l.PodName), math.MaxUint8)] // the schema allows 253 bytes
	container, uid := PackHex(l.ContainerID), PackUUID(l.PodUID)
	r := &Record{
		Addr: l.Addr, Version: l.Version, Epoch: l.Epoch, Bound: l.BoundVersion, State: l.State,
		Updated: Nanos(l.Updated), started: Nanos(l.StartedAt),
		Params: unique.Make(l.Params), Host: unique.Make(l.Host),
		attached: unique.Make(attachedBy{l.IfName, l.CNINetwork, l.Given}), Namespace: unique.Make(l.Namespace),
		ids:          container.Bytes + uid.Bytes + podName + string(l.History),
		lenContainer: uint16(len(container.Bytes)), lenUID: uint16(len(uid.Bytes)), lenName: uint8(len(podName)),
		setSize: uint8(l.SetSize), Slot: uint8(l.Slot),
	}
	if l.Owner != "" || len(l.Superseded) > 0 || l.Retention != (lease.Retention{}) || l.Termination != 0 ||
		l.Other != nil || l.Conflict != nil {
		r.extra = &extra{
			owner: l.Owner, superseded: l.Superseded, retention: l.Retention,
			termination: int32(l.Termination / time.Second), other: l.Other, conflict: l.Conflict,
		}
	}
	r.set(FlagDeleting, l.Deleting)
	r.set(FlagFinalizer, l.HeldFinalizer)
	r.set(flagForeign, l.Foreign)
	r.set(flagPackedContainer, container.packed)
	r.set(flagPackedUID, uid.packed)
	r.set(flagUIDNamed, l.UIDNamed)
	r.set(flagAddressNamed, l.AddressNamed)
	return r
}

// Lease returns the lease of an entry.
func (r *Record) Lease() lease.Lease {
	l := lease.Lease{
		Addr: r.Addr, Version: r.Version, Epoch: r.Epoch, State: r.State, Params: r.Params.Value(),
		Holder: lease.Holder{
			Host: r.Host.Value(), ContainerID: r.Container().hex(), IfName: r.IfName(),
			CNINetwork: r.attached.Value().cniNetwork, Given: r.attached.Value().given,
			AddressNamed: r.Has(flagAddressNamed),
			Namespace:    r.Namespace.Value(), PodName: r.PodName(), PodUID: r.UID().uuid(),
			UIDNamed: r.Has(flagUIDNamed),
			SetSize:  int(r.setSize), Slot: int(r.Slot), StartedAt: FromNanos(r.started), BoundVersion: r.Bound,
		},
		Updated:       FromNanos(r.Updated),
		History:       r.History(),
		Deleting:      r.Has(FlagDeleting),
		HeldFinalizer: r.Has(FlagFinalizer),
		Foreign:       r.Has(flagForeign),
	}
	if r.extra != nil {
		l.Owner, l.Superseded, l.Retention = r.extra.owner, r.extra.superseded, r.extra.retention
		l.Termination, l.Other = time.Duration(r.extra.termination)*time.Second, r.extra.other
		l.Conflict = r.extra.conflict
	}
	return l
}

// Has reports whether a flag is set.
func (r *Record) Has(flag uint8) bool { return r.flags&flag != 0 }

func (r *Record) set(flag uint8, on bool) {
	if on {
		r.flags |= flag
	}
}

// Container returns the ID of the container.
func (r *Record) Container() ID {
	return ID{r.ids[:r.lenContainer], r.Has(flagPackedContainer)}
}

// UID returns the UID of the pod.
func (r *Record) UID() ID {
	return ID{r.ids[r.lenContainer : r.lenContainer+r.lenUID], r.Has(flagPackedUID)}
}

// History returns who had the address before.
func (r *Record) History() lease.History { return lease.History(r.ids[r.names()+int(r.lenName):]) }

// LastUID returns the UID of the pod that had the address last; empty if it is not known.
func (r *Record) LastUID() string {
	uid, _ := r.History().LastAttachment()
	return uid
}

// names returns where the pod's name begins.
func (r *Record) names() int { return int(r.lenContainer) + int(r.lenUID) }

// PodName returns the name of the pod, up to 255 bytes of it.
func (r *Record) PodName() string { return r.ids[r.names():][:r.lenName] }

// IfName returns the interface that the address is on.
func (r *Record) IfName() string { return r.attached.Value().ifName }

// Owner returns who has the address in place of a pod; empty for a pod.
func (r *Record) Owner() string {
	if r.extra == nil {
		return ""
	}
	return r.extra.owner
}

// Other returns the second attachment, nil if there is none.
func (r *Record) Other() *lease.Holder {
	if r.extra == nil {
		return nil
	}
	return r.extra.other
}

// Claim returns the claim that the address belongs to; empty for none.
func (r *Record) Claim() string {
	if r.extra == nil {
		return ""
	}
	return r.extra.retention.Claim
}

// key returns which pod of its claim the address is for.
func (r *Record) key() string {
	if r.extra == nil {
		return ""
	}
	return r.extra.retention.PodPrimaryKey
}

// Nanos returns a time in Unix nanoseconds, 0 for none.
func Nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// FromNanos undoes nanos.
func FromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

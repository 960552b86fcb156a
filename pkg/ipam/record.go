package ipam

import (
	"math"
	"net/netip"
	"time"
	"unique"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// record is a Lease as the index keeps it, in about 240 bytes with its strings and without history: what repeats (pool,
// host, interface, namespace) is interned, the strings that do not are one allocation.
type record struct {
	addr      netip.Addr
	version   uint64
	bound     uint64 // 0 = version
	updated   int64  // Unix nanoseconds, 0 = never
	started   int64
	params    unique.Handle[lease.Params]
	host      unique.Handle[netip.Addr]
	attached  unique.Handle[attachedBy]
	namespace unique.Handle[string]
	ids       string // container ID, pod UID, pod name, history, one behind the other
	extra     *extra // nil for nearly all

	// These are chains of the index's tables. One that is Available is in byLast by nextAttachment.
	nextAddr, nextContainer, nextAttachment *record

	epoch                uint32
	lenContainer, lenUID uint16
	lenName              uint8
	state                lease.State
	flags, setSize, slot uint8
}

// attachedBy is what the interfaces of very many containers have in common.
type attachedBy struct {
	ifName, cniNetwork string
	given              lease.Given
}

// extra is what few leases have.
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

	nextKey *record // chain of the index's table
}

const (
	flagDeleting = 1 << iota
	flagFinalizer
	flagForeign
	flagPackedContainer
	flagPackedUID
	flagUIDNamed
	flagAddressNamed
)

// pack makes the entry of a lease.
func pack(l lease.Lease) *record {
	if l.FromSecond {
		l = l.Turned()
	}
	podName := l.PodName[:min(len(l.PodName), math.MaxUint8)] // the schema allows 253 bytes
	container, uid := compactHex(l.ContainerID), compactUUID(l.PodUID)
	r := &record{
		addr: l.Addr, version: l.Version, epoch: l.Epoch, bound: l.BoundVersion, state: l.State,
		updated: nanos(l.Updated), started: nanos(l.StartedAt),
		params: unique.Make(l.Params), host: unique.Make(l.Host),
		attached: unique.Make(attachedBy{l.IfName, l.CNINetwork, l.Given}), namespace: unique.Make(l.Namespace),
		ids:          container.bytes + uid.bytes + podName + string(l.History),
		lenContainer: uint16(len(container.bytes)), lenUID: uint16(len(uid.bytes)), lenName: uint8(len(podName)),
		setSize: uint8(l.SetSize), slot: uint8(l.Slot),
	}
	if l.Owner != "" || len(l.Superseded) > 0 || l.Retention != (lease.Retention{}) || l.Termination != 0 ||
		l.Other != nil || l.Conflict != nil {
		r.extra = &extra{
			owner: l.Owner, superseded: l.Superseded, retention: l.Retention,
			termination: int32(l.Termination / time.Second), other: l.Other, conflict: l.Conflict,
		}
	}
	r.set(flagDeleting, l.Deleting)
	r.set(flagFinalizer, l.HeldFinalizer)
	r.set(flagForeign, l.Foreign)
	r.set(flagPackedContainer, container.packed)
	r.set(flagPackedUID, uid.packed)
	r.set(flagUIDNamed, l.UIDNamed)
	r.set(flagAddressNamed, l.AddressNamed)
	return r
}

// lease returns the lease of an entry.
func (r *record) lease() lease.Lease {
	l := lease.Lease{
		Addr: r.addr, Version: r.version, Epoch: r.epoch, State: r.state, Params: r.params.Value(),
		Holder: lease.Holder{
			Host: r.host.Value(), ContainerID: r.container().hex(), IfName: r.ifName(),
			CNINetwork: r.attached.Value().cniNetwork, Given: r.attached.Value().given,
			AddressNamed: r.has(flagAddressNamed),
			Namespace:    r.namespace.Value(), PodName: r.podName(), PodUID: r.uid().uuid(),
			UIDNamed: r.has(flagUIDNamed),
			SetSize:  int(r.setSize), Slot: int(r.slot), StartedAt: fromNanos(r.started), BoundVersion: r.bound,
		},
		Updated:       fromNanos(r.updated),
		History:       r.history(),
		Deleting:      r.has(flagDeleting),
		HeldFinalizer: r.has(flagFinalizer),
		Foreign:       r.has(flagForeign),
	}
	if r.extra != nil {
		l.Owner, l.Superseded, l.Retention = r.extra.owner, r.extra.superseded, r.extra.retention
		l.Termination, l.Other = time.Duration(r.extra.termination)*time.Second, r.extra.other
		l.Conflict = r.extra.conflict
	}
	return l
}

// has reports whether a flag is set.
func (r *record) has(flag uint8) bool { return r.flags&flag != 0 }

func (r *record) set(flag uint8, on bool) {
	if on {
		r.flags |= flag
	}
}

// container returns the ID of the container.
func (r *record) container() compact {
	return compact{r.ids[:r.lenContainer], r.has(flagPackedContainer)}
}

// uid returns the UID of the pod.
func (r *record) uid() compact {
	return compact{r.ids[r.lenContainer : r.lenContainer+r.lenUID], r.has(flagPackedUID)}
}

// history returns who had the address before.
func (r *record) history() lease.History { return lease.History(r.ids[r.names()+int(r.lenName):]) }

// lastUID returns the UID of the pod that had the address last; empty if it is not known.
func (r *record) lastUID() string {
	uid, _ := r.history().LastAttachment()
	return uid
}

// names returns where the pod's name begins.
func (r *record) names() int { return int(r.lenContainer) + int(r.lenUID) }

// podName returns the name of the pod, up to 255 bytes of it.
func (r *record) podName() string { return r.ids[r.names():][:r.lenName] }

// ifName returns the interface that the address is on.
func (r *record) ifName() string { return r.attached.Value().ifName }

// owner returns who has the address in place of a pod; empty for a pod.
func (r *record) owner() string {
	if r.extra == nil {
		return ""
	}
	return r.extra.owner
}

// other returns the second attachment, nil where there is none.
func (r *record) other() *lease.Holder {
	if r.extra == nil {
		return nil
	}
	return r.extra.other
}

// claim returns the claim that the address belongs to; empty for none.
func (r *record) claim() string {
	if r.extra == nil {
		return ""
	}
	return r.extra.retention.Claim
}

// key returns which pod of its claim the address is for.
func (r *record) key() string {
	if r.extra == nil {
		return ""
	}
	return r.extra.retention.PodPrimaryKey
}

// nanos returns a time in Unix nanoseconds, 0 for none.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// fromNanos undoes nanos.
func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

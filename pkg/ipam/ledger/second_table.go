package ledger

import (
	"iter"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// secondTable finds the entries of addresses that have two attachments by the second one, as the other tables do by the
// first. There are no more of them than virtual machines that migrate.
type secondTable struct {
	Containers, uids map[ID][]*Record
}

// newSecondTable returns a table without entries.
func newSecondTable() secondTable {
	return secondTable{Containers: map[ID][]*Record{}, uids: map[ID][]*Record{}}
}

func (x *secondTable) enter(r *Record) {
	if h := r.Other(); h != nil {
		add(x.Containers, PackHex(h.ContainerID), r)
		add(x.uids, PackUUID(h.PodUID), r)
	}
}

func (x *secondTable) leave(r *Record) {
	if h := r.Other(); h != nil {
		remove(x.Containers, PackHex(h.ContainerID), r)
		remove(x.uids, PackUUID(h.PodUID), r)
	}
}

func add(to map[ID][]*Record, key ID, r *Record) {
	if key.Bytes != "" {
		to[key] = append(to[key], r)
	}
}

func remove(from map[ID][]*Record, key ID, r *Record) {
	from[key] = slices.DeleteFunc(from[key], func(o *Record) bool { return o == r })
	if len(from[key]) == 0 {
		delete(from, key)
	}
}

// EachHost yields the hosts of an entry's attachments: one, or two while a virtual machine migrates.
func (r *Record) EachHost() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		first := r.Host.Value()
		if first.IsValid() && !yield(first) {
			return
		}
		if h := r.Other(); h != nil && h.Host.IsValid() && h.Host != first {
			yield(h.Host)
		}
	}
}

// Attachment is an entry as seen from one of its attachments.
type Attachment struct {
	*Record
	Second bool
}

// Lease returns the lease as seen from the attachment.
func (a Attachment) Lease() lease.Lease {
	l := a.Record.Lease()
	if a.Second {
		return l.Turned()
	}
	return l
}

// Attached yields the entries of a pod, by its UID and its name if that is known, or of an owner, on an interface, on
// all of them when IfName is empty; none for a holder without pod UID and owner.
func (x *Leases) Attached(h lease.Holder) iter.Seq[Attachment] {
	return func(yield func(Attachment) bool) {
		if h.Owner == "" && h.PodUID == "" {
			return
		}
		uid := PackUUID(h.PodUID)
		for r := x.byAttachment.first(x.hash().attachment(h.Owner, uid)); r != nil; r = r.nextAttachment {
			if r.Owner() == h.Owner && (h.Owner != "" || r.UID() == uid) && (h.IfName == "" ||
				r.IfName() == h.IfName) && !h.HasOtherName(r.Namespace.Value(), r.PodName()) &&
				!yield(Attachment{r, false}) {
				return
			}
		}
		if h.Owner != "" {
			return
		}
		for _, r := range x.Second.uids[uid] {
			o := r.Other()
			if (h.IfName == "" || o.IfName == h.IfName) && !h.HasOtherName(o.Namespace, o.PodName) &&
				!yield(Attachment{r, true}) {
				return
			}
		}
	}
}

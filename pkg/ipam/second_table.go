package ipam

import (
	"iter"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// secondTable finds the entries of addresses that have two attachments by the second one, as the other tables do by the
// first. There are no more of them than virtual machines that migrate.
type secondTable struct {
	containers, uids map[compact][]*record
}

// newSecondTable returns a table without entries.
func newSecondTable() secondTable {
	return secondTable{containers: map[compact][]*record{}, uids: map[compact][]*record{}}
}

func (x *secondTable) enter(r *record) {
	if h := r.other(); h != nil {
		add(x.containers, compactHex(h.ContainerID), r)
		add(x.uids, compactUUID(h.PodUID), r)
	}
}

func (x *secondTable) leave(r *record) {
	if h := r.other(); h != nil {
		remove(x.containers, compactHex(h.ContainerID), r)
		remove(x.uids, compactUUID(h.PodUID), r)
	}
}

func add(to map[compact][]*record, key compact, r *record) {
	if key.bytes != "" {
		to[key] = append(to[key], r)
	}
}

func remove(from map[compact][]*record, key compact, r *record) {
	from[key] = slices.DeleteFunc(from[key], func(o *record) bool { return o == r })
	if len(from[key]) == 0 {
		delete(from, key)
	}
}

// hosts yields the hosts of an entry's attachments: one, or two while a virtual machine migrates.
func (r *record) hosts() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		first := r.host.Value()
		if first.IsValid() && !yield(first) {
			return
		}
		if h := r.other(); h != nil && h.Host.IsValid() && h.Host != first {
			yield(h.Host)
		}
	}
}

// attachment is an entry as seen from one of its attachments.
type attachment struct {
	*record
	second bool
}

// lease returns the lease as seen from the attachment.
func (a attachment) lease() lease.Lease {
	l := a.record.lease()
	if a.second {
		return l.Turned()
	}
	return l
}

// attached yields the entries of a pod, by its UID, or of an owner, on an interface, on all of them when IfName is
// empty; none for a holder without pod UID and owner.
func (x *leaseTable) attached(h lease.Holder) iter.Seq[attachment] {
	return func(yield func(attachment) bool) {
		if h.Owner == "" && h.PodUID == "" {
			return
		}
		uid := compactUUID(h.PodUID)
		for r := x.byAttachment.first(x.hash().attachment(h.Owner, uid)); r != nil; r = r.nextAttachment {
			if r.owner() == h.Owner && (h.Owner != "" || r.uid() == uid) && (h.IfName == "" ||
				r.ifName() == h.IfName) &&
				!yield(attachment{r, false}) {
				return
			}
		}
		if h.Owner != "" {
			return
		}
		for _, r := range x.second.uids[uid] {
			if (h.IfName == "" || r.other().IfName == h.IfName) && !yield(attachment{r, true}) {
				return
			}
		}
	}
}

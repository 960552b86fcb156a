package lease

import (
	"iter"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// An address has one attachment, the interface of one pod or owner, or two while the virtual machine in a pod migrates
// live: that of the pod which the machine leaves, and that of the pod which it goes to. They are in one object, so who
// attaches and who ends an attachment are ordered by the same compare-and-swap. A lease is seen from one attachment:
// Holder is that one. What is written to an attachment is written to the one that the lease is seen from.

// Turned returns the lease as seen from its other attachment; a lease with one attachment as it is.
func (l Lease) Turned() Lease {
	if l.Other == nil {
		return l
	}
	from := l.Holder
	l.Holder, l.Other, l.FromSecond = *l.Other, &from, !l.FromSecond
	return l
}

// Attachments yields the lease as seen from each of its attachments, in the order of the object.
func (l Lease) Attachments() iter.Seq[Lease] {
	return func(yield func(Lease) bool) {
		if l.FromSecond {
			l = l.Turned()
		}
		if yield(l) && l.Other != nil {
			yield(l.Turned())
		}
	}
}

// From returns the lease as seen from the first attachment that matches; ok is false, and the lease as it was, where
// none does.
func (l Lease) From(match func(Lease) bool) (from Lease, ok bool) {
	for from := range l.Attachments() {
		if match(from) {
			return from, true
		}
	}
	return l, false
}

// Attach gives an address that a pod has a second attachment: that of the pod to which the virtual machine in the first
// one migrates. The caller has made sure of that. The answer is seen from the new attachment. It is refused (ok false)
// for everybody but the claim and the primary key that the address is for, for the attachment that there is, where
// there are two, and when the object is being deleted.
func Attach(l Lease, h Holder, s Retention, now time.Time) (next Lease, ok bool) {
	if l.State != Active || l.Deleting || l.Other != nil || l.Owner != "" || h.Owner != "" || h.ContainerID == "" ||
		h.ContainerID == l.ContainerID || h.Namespace != l.Namespace || l.PodPrimaryKey == "" ||
		h.SameAttachment(l.Holder) || !l.Admits(h, s) {
		return l, false
	}
	l.stay()
	from := l.Holder
	h.Superseded, h.SetSize, h.UIDNamed, h.BoundVersion = nil, l.SetSize, true, 0
	l.Holder, l.Other, l.FromSecond, l.Updated = h, &from, true, l.given(now)
	return l, true
}

// detach ends the attachment that the lease is seen from. From then on only the other one has the address, on the same
// terms.
func detach(l Lease, now time.Time, c Change) Lease {
	l.History = l.History.Add(past(l, now, c))
	l.stay()
	l.Holder, l.Other, l.FromSecond, l.Updated = *l.Other, nil, false, l.given(now)
	return l
}

// EndWhere ends those attachments of a lease that match, and what becomes of the address when none is left is up to
// end: Release, or Free. changed is false where a lease of two attachments has none that matches. That of a lease which
// has one only is not asked: the caller knows it.
func EndWhere(
	l Lease, match func(Lease) bool, now time.Time, c Change, end func(Lease, time.Time, Change) (Lease, bool),
) (next Lease, changed bool) {
	if l.State != Active || l.Other == nil || failpoint.Broken("second") {
		return end(l, now, c)
	}
	from, ok := l.From(match)
	if !ok {
		return l, false
	}
	rest := from.Turned()
	next = detach(from, now, c)
	if !match(rest) {
		return next, true
	}
	return end(next, now, c)
}

package store

import (
	"time"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// secondAttachment returns the field of a second attachment; nil for none.
func secondAttachment(h *lease.Holder) *v1.SecondAttachment {
	if h == nil {
		return nil
	}
	return &v1.SecondAttachment{
		PodName: h.PodName, PodUID: h.PodUID, ContainerID: h.ContainerID, IfName: h.IfName, Host: addrString(h.Host),
		StartedAt: FormatTime(h.StartedAt), TerminationGracePeriodSeconds: int32(h.Termination / time.Second),
		SupersededContainerIDs: h.Superseded, BoundVersion: formatVersion(h.BoundVersion), CNINetwork: h.CNINetwork,
		Given: given(*h),
	}
}

// readSecond reads the field. first is the other attachment, with the same namespace and request. The pod is identified
// by its UID, because the virtual machine named it. ok is false if the field cannot be read completely.
func readSecond(s *v1.SecondAttachment, first lease.Holder) (h *lease.Holder, ok bool) {
	if s == nil {
		return nil, true
	}
	h = &lease.Holder{
		ContainerID: s.ContainerID, IfName: s.IfName, Namespace: first.Namespace, PodName: s.PodName, PodUID: s.PodUID,
		UIDNamed: true, CNINetwork: s.CNINetwork, Superseded: s.SupersededContainerIDs,
		SetSize: first.SetSize, Slot: first.Slot, Given: readGiven(s.Given),
		Termination: time.Duration(max(0, s.TerminationGracePeriodSeconds)) * time.Second,
	}
	var okHost, okStart, okBound bool
	h.Host, okHost = parseAddr(s.Host)
	h.StartedAt, okStart = ParseTime(s.StartedAt)
	h.BoundVersion, okBound = readVersion(s.BoundVersion)
	return h, okHost && okStart && okBound
}

// foreignLabels returns the number of labels that do not belong to a lease.
func foreignLabels(labels map[string]string) int {
	if _, ours := labels[v1.MigratingLabel]; ours {
		return len(labels) - 1
	}
	return len(labels)
}

// conflict returns the field of the last report of a conflict; nil for none.
func conflict(c *lease.Conflict) *v1.AddressConflict {
	if c == nil {
		return nil
	}
	return &v1.AddressConflict{
		MAC: c.MAC, Host: addrString(c.Host), ContainerID: c.ContainerID, ReportedAt: FormatTime(c.At),
		Outcome: v1.ConflictOutcome(c.Outcome.String()), Until: FormatTime(c.Until),
	}
}

// readConflict reads the field. ok is false if it cannot be read completely; then the report is ignored.
func readConflict(c *v1.AddressConflict) (read *lease.Conflict, ok bool) {
	if c == nil {
		return nil, true
	}
	read = &lease.Conflict{MAC: c.MAC, ContainerID: c.ContainerID}
	for _, o := range [...]lease.ConflictOutcome{
		lease.ConflictQuarantined, lease.ConflictReleased, lease.ConflictKept,
	} {
		if string(c.Outcome) == o.String() {
			read.Outcome = o
		}
	}
	var okHost, okAt, okUntil bool
	read.Host, okHost = parseAddr(c.Host)
	read.At, okAt = ParseTime(c.ReportedAt)
	read.Until, okUntil = ParseTime(c.Until)
	if !okHost || !okAt || !okUntil || read.Outcome == 0 {
		return nil, false
	}
	return read, true
}

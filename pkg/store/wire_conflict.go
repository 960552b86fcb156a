package store

import (
	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

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

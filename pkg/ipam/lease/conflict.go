package lease

import (
	"net/netip"
	"slices"
	"time"
)

const (
	// FirstQuarantine is the time for which an address rests after somebody else answered for it. It doubles with each
	// further report of the address, up to MaxQuarantine.
	FirstQuarantine = time.Hour
	// MaxQuarantine is the time for which an address rests at most, and how long after the end of its quarantine a
	// further report still doubles that.
	MaxQuarantine = 24 * time.Hour
	// ConflictWindow is for how long a report counts among those of its MAC, its pool and its host.
	ConflictWindow = time.Hour
)

// ConflictOutcome says what a report of a conflict led to.
type ConflictOutcome uint8

// Outcomes of a report.
const (
	// ConflictQuarantined: the address is Reserved until Until.
	ConflictQuarantined ConflictOutcome = iota + 1
	// ConflictReleased: the holder gave the address up, and a brake held the quarantine back.
	ConflictReleased
	// ConflictKept: the holder kept the address.
	ConflictKept
)

// String returns the word that objects and metrics use.
func (o ConflictOutcome) String() string {
	switch o {
	case ConflictQuarantined:
		return "Quarantined"
	case ConflictReleased:
		return "Released"
	case ConflictKept:
		return "Kept"
	default:
		return ""
	}
}

// Conflict is a report that somebody else answers for an address. It stays with the address when that goes on to
// others: what was reported in the last hour, and how long the next quarantine takes, is read only from it.
type Conflict struct {
	// MAC that answered, in lower case with colons.
	MAC string
	// Host and ContainerID of the holder that reported it.
	Host        netip.Addr
	ContainerID string
	// At is when it was reported, by the API server's time.
	At      time.Time
	Outcome ConflictOutcome
	// Until is when the quarantine ends; zero without one.
	Until time.Time
}

// Recent reports whether the report counts among those of its MAC, its pool and its host.
func (c *Conflict) Recent(now time.Time) bool {
	return c != nil && now.Before(c.At.Add(ConflictWindow))
}

// Past reports whether a report counts for nothing any more.
func (c *Conflict) Past(now time.Time) bool {
	return c != nil && !c.Recent(now) && !now.Before(c.Until.Add(MaxQuarantine))
}

// From reports whether a container reported that very conflict.
func (c *Conflict) From(containerID, mac string) bool {
	return c != nil && containerID != "" && c.ContainerID == containerID && c.MAC == mac
}

// next returns how long a quarantine takes that begins now, after the given report of the address.
func (c *Conflict) next(now time.Time) time.Duration {
	if c == nil || c.Outcome != ConflictQuarantined || c.Past(now) {
		return FirstQuarantine
	}
	return min(max(2*c.Until.Sub(c.At), FirstQuarantine), MaxQuarantine)
}

// IsQuarantined reports whether an address rests because somebody else answered for it. One that was set aside by
// hand since does not: that is another change of its state.
func (l Lease) IsQuarantined() bool {
	return l.State == Reserved && l.Claim == "" && l.Conflict != nil && l.Conflict.Outcome == ConflictQuarantined &&
		l.Conflict.At.Equal(l.Updated)
}

// IsSetAside reports whether somebody set the address aside by hand.
func (l Lease) IsSetAside() bool { return l.State == Reserved && l.Claim == "" && !l.IsQuarantined() }

// Reservation returns who set the address aside and why, as far as its history shows; the zero Change for one that is
// not set aside.
func (l Lease) Reservation() Change {
	if last, some := l.History.Last(); some && l.State == Reserved && last.Verb == VerbReserve {
		return last.Change
	}
	return Change{}
}

// KeptInConflict reports whether the holder of an address keeps it although somebody else answers for it: a claim
// keeps the address, the holder asked for this very one, or two pods have it while a virtual machine migrates.
func (l Lease) KeptInConflict() bool { return l.KeptOnRelease() || l.AddressNamed || l.Other != nil }

// Quarantine takes an address from the holder that found somebody else answering for it, and sets it aside for a time
// that doubles with each further report. It is one write: the DEL of the holder finds nothing. It is refused (ok
// false) where nobody has the address, and where the holder keeps it.
func Quarantine(l Lease, mac string, now time.Time) (next Lease, ok bool) {
	if l.State != Active || l.KeptInConflict() {
		return l, false
	}
	now = l.given(now)
	until := now.Add(l.Conflict.next(now))
	next = l
	next.History = l.History.Add(past(l, now, Change{
		Verb: VerbConflict, By: mac, Reason: "answered for it; nobody gets it until " +
			until.UTC().Format(time.RFC3339),
	}))
	next.Conflict = &Conflict{mac, l.Host, l.ContainerID, now, ConflictQuarantined, until}
	next.State, next.Holder, next.Retention = Reserved, Holder{}, Retention{}
	next.Updated, next.BoundVersion, next.HeldFinalizer = now, 0, true
	return next, true
}

// Contest takes an address from the holder that found somebody else answering for it, as Release does, where a brake
// holds the quarantine back. It is refused (ok false) where Quarantine is.
func Contest(l Lease, mac string, now time.Time) (next Lease, ok bool) {
	if l.State != Active || l.KeptInConflict() {
		return l, false
	}
	next, ok = Release(l, now, Change{Verb: VerbConflict, By: mac, Reason: "answered for it and for others"})
	next.Conflict = &Conflict{mac, l.Host, l.ContainerID, next.Updated, ConflictReleased, time.Time{}}
	return next, ok
}

// NoteConflict remembers that somebody else answers for an address that its holder keeps. It is refused (ok false)
// where Quarantine is the way, where two pods have the address, and where the same was noted less than a minute
// before: who keeps an address asks for it again and again.
func NoteConflict(l Lease, mac string, now time.Time) (next Lease, ok bool) {
	if l.State != Active || !l.KeptInConflict() || l.Other != nil ||
		l.Conflict.From(l.ContainerID, mac) && now.Before(l.Conflict.At.Add(time.Minute)) {
		return l, false
	}
	l.stay()
	l.Conflict = &Conflict{mac, l.Host, l.ContainerID, now, ConflictKept, time.Time{}}
	return l, true
}

// QuarantineOver reports whether an address is quarantined although the end of that has come: it is to be freed.
func (l Lease) QuarantineOver(now time.Time) bool {
	return l.IsQuarantined() && !now.Before(l.Conflict.Until)
}

// Has reports whether a holder is, or was until another container of its pod took its place, one of some containers.
func (h Holder) Has(containers func(id string) bool) bool {
	return containers(h.ContainerID) || slices.ContainsFunc(h.Superseded, containers)
}

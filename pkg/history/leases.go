package history

import (
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// OfLease returns the records of a change of an address, none for most: an address that is given to somebody is in
// its own object. What the address remembers since the earlier state comes first, then what ended without its saying
// so. now is the time of a change that has none of its own.
func OfLease(was, is lease.Lease, now time.Time) (records []Record) {
	if is.Version > 0 && (was.Epoch != is.Epoch || is.Version <= was.Version) {
		return nil // the store was put back: nothing has ended
	}
	said := news(was, is)
	for _, p := range said {
		r := remembered(is, p)
		if is.Version > 0 && is.Claim == "" {
			r.Claim = was.Claim
		}
		records = append(records, r)
	}
	if was.State == lease.Active {
		for from := range was.Attachments() {
			if i := entryOf(from, said); i >= 0 {
				records[i] = in(records[i], from)
			} else if what := fate(from, is); what != "" {
				records = append(records, held(from, what, changed(is, now)))
			}
		}
	}
	if was.IsRetained() && is.State == lease.Available && len(said) == 0 {
		records = append(records, held(was, WhatEnded, changed(is, now)))
	}
	return records
}

// in returns a record of an address with the full names of the attachment that it is about.
func in(r Record, from lease.Lease) Record {
	full := held(from, r.What, r.Time)
	full.By, full.Reason = r.By, r.Reason
	return full
}

// entryOf returns the index of the entry that is about an attachment; -1 for none.
func entryOf(from lease.Lease, said []lease.Past) int {
	for i, p := range said {
		if p.Holder == lease.PastHolder(from.Who()) && p.Since.Equal(second(from.Updated)) && p.Host == from.Host {
			return i
		}
	}
	return -1
}

// fate returns what became of an attachment of which the address remembers nothing; empty if it goes on.
func fate(from, is lease.Lease) string {
	switch {
	case is.Version == 0:
		return WhatLost
	case is.State != lease.Active:
		return WhatGaveUp
	}
	what := WhatTaken
	for to := range is.Attachments() {
		switch {
		case to.Who() != from.Who():
		case to.Host == from.Host && (to.ContainerID == from.ContainerID || from.ContainerID == ""):
			return "" // only more is known of it than before
		default:
			what = WhatMoved
		}
	}
	return what
}

// news returns what the later lease remembers and the earlier one did not, newest first.
func news(was, is lease.Lease) (said []lease.Past) {
	if is.History == was.History {
		return nil
	}
	before, had := was.History.Last()
	for p := range is.History.All() {
		if had && before.Until.Equal(p.Until) && before.Since.Equal(p.Since) && before.Holder == p.Holder &&
			before.Change == p.Change {
			break
		}
		said = append(said, p)
	}
	return said
}

// Remembered returns what an address itself remembers of the time from a moment on: at most lease.MaxHistory records.
func Remembered(l lease.Lease, from time.Time) (records []Record) {
	for p := range l.History.All() {
		if !p.Until.Before(from) {
			records = append(records, remembered(l, p))
		}
	}
	return records
}

func changed(is lease.Lease, now time.Time) time.Time {
	if is.Version == 0 || is.Updated.IsZero() {
		return now
	}
	return is.Updated
}

package lease

import (
	"encoding/binary"
	"iter"
	"net/netip"
	"slices"
	"time"
)

// MaxHistory is the number of earlier holders that an address remembers.
const MaxHistory = 3

// Bounds of an entry's texts, in bytes; what is longer is cut. Together they keep an entry within 310.
const (
	MaxPastHolder = 128
	MaxPastVerb   = 32
	MaxPastBy     = 64
	MaxPastReason = 80
)

// Verbs of changes that the holder did not ask for, as objects store them: by hand, and of the controller when
// it takes an address back. A newer release may have more.
const (
	VerbRelease     = "release"
	VerbReleaseHost = "release-host"
	VerbReserve     = "reserve"
	VerbUnreserve   = "unreserve"
	VerbCollect     = "collect"
	VerbConflict    = "conflict"
	VerbImport      = "import"
)

// Change says who changes an address by hand, and why. The zero Change is not such a change: the holder itself gives
// the address up.
type Change struct{ Verb, By, Reason string }

// Past is one entry of the history of an address: who held it and until when, or what was done to it.
type Past struct {
	// Holder is namespace/pod or the owner; empty when nobody held the address.
	Holder string
	// PodUID and IfName are the holder's attachment, in the newest entry that has a holder: empty in others, for a
	// holder whose pod is not known, and IfName for DefaultIfName.
	PodUID, IfName string
	// Host is the holder's host; invalid if it is not known.
	Host netip.Addr
	// Since and Until bound the time of the entry, to the second; Since may be zero.
	Since, Until time.Time
	Change
}

// History is what happened to an address before, newest first, at most MaxHistory entries. It is packed:
// the index holds one for every address. The zero History is empty.
type History string

// PastHolder returns a holder's name as an entry of a history has it.
func PastHolder(name string) string { return cut(name, MaxPastHolder) }

// NewHistory packs entries, newest first. Those beyond MaxHistory are dropped, long texts are cut. Attachments are kept
// only in the newest entry that has a holder.
func NewHistory(entries []Past) History {
	var b []byte
	previous, last := "", true
	for _, p := range entries[:min(len(entries), MaxHistory)] {
		holder := PastHolder(p.Holder)
		shared := commonPrefix(previous, holder)
		host := p.Host.AsSlice()
		b = append(b, byte(len(host)))
		b = append(b, host...)
		b = binary.AppendVarint(b, seconds(p.Until))
		b = binary.AppendVarint(b, seconds(p.Until)-seconds(p.Since))
		b = append(b, byte(shared))
		b = appendText(b, holder[shared:])
		b = appendText(b, cut(p.Verb, MaxPastVerb))
		b = appendText(b, cut(p.By, MaxPastBy))
		b = appendText(b, cut(p.Reason, MaxPastReason))
		if !last || holder == "" {
			p.PodUID = ""
		}
		b = appendAttachment(b, p.PodUID, p.IfName)
		last = last && holder == ""
		previous = holder
	}
	return History(b)
}

// Entries unpacks the history, newest first.
func (h History) Entries() []Past { return slices.Collect(h.All()) }

// Last returns the newest entry; ok is false where there is none.
func (h History) Last() (p Past, ok bool) {
	for p := range h.All() {
		return p, true
	}
	return p, false
}

// All returns an iterator over the entries, newest first.
func (h History) All() iter.Seq[Past] {
	return func(yield func(Past) bool) {
		b, previous := []byte(h), ""
		for len(b) > 0 {
			var p Past
			n := int(b[0])
			p.Host, _ = netip.AddrFromSlice(b[1 : 1+n])
			b = b[1+n:]
			var until, lasted int64
			until, b = varint(b)
			lasted, b = varint(b)
			p.Until, p.Since = fromSeconds(until), fromSeconds(until-lasted)
			shared := int(b[0])
			p.Holder, b = text(b[1:])
			p.Holder = previous[:shared] + p.Holder
			p.Verb, b = text(b)
			p.By, b = text(b)
			p.Reason, b = text(b)
			p.PodUID, p.IfName, b = attachment(b)
			if previous = p.Holder; !yield(p) {
				return
			}
		}
	}
}

// Add puts an entry in front; the oldest of more than MaxHistory is forgotten.
func (h History) Add(p Past) History { return NewHistory(append([]Past{p}, h.Entries()...)) }

// past returns the entry for a lease that changes now.
func past(l Lease, now time.Time, c Change) Past {
	p := Past{Until: now, Change: c}
	if l.State == Active {
		p.Holder, p.Host, p.Since = l.Who(), l.Host, l.Updated
		if l.Owner == "" && c.Verb != VerbConflict { // where somebody else answers, another address is better
			p.PodUID = l.PodUID
		}
		if p.PodUID != "" && l.IfName != DefaultIfName {
			p.IfName = l.IfName
		}
	}
	return p
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// cut shortens a text to a number of bytes, and never inside a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	n -= len(mark)
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + mark
}

func appendText(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }

func text(b []byte) (string, []byte) {
	n := int(b[0])
	return string(b[1 : 1+n]), b[1+n:]
}

func varint(b []byte) (int64, []byte) {
	v, n := binary.Varint(b)
	return v, b[n:]
}

// seconds returns Unix seconds; 0 stands for the zero time.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func fromSeconds(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0).UTC()
}

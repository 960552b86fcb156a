package lease

import (
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// CoolsUntil returns when an address that was given up may be allocated again by a pool of the given cooldown; zero
// where nothing holds it back. An address rests from its release, whoever released it. That it was set aside in between
// neither ends the rest nor begins another; one that nobody ever held has none.
func (l Lease) CoolsUntil(cooldown time.Duration) time.Time {
	if cooldown <= 0 || failpoint.Broken("cooldown") || l.State != Available || l.Updated.IsZero() {
		return time.Time{}
	}
	since := givenUp(l.Updated, l.History)
	if since.IsZero() {
		return since
	}
	return since.Add(cooldown)
}

// givenUp returns when somebody last gave up an address that is Available; zero when nobody ever held it.
func givenUp(updated time.Time, h History) time.Time {
	entries := h.Entries()
	at := slices.IndexFunc(entries, func(p Past) bool { return p.Holder != "" })
	switch {
	case at > 0: // changed by hand since; the history counts in whole seconds, rounded down
		return entries[at].Until.Add(time.Second)
	case at < 0 && len(entries) > 0 && len(entries) < MaxHistory: // a whole history, and nobody in it
		return time.Time{}
	default:
		return updated
	}
}

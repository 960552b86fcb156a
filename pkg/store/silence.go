package store

import (
	"context"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// A watch may be open but deliver nothing: because a connection is stuck on the way, or because the API server's cache
// lags. It would not be noticed for minutes, and meanwhile no write is confirmed. A replica's own writes show what its
// watch must deliver.
const (
	// lookEvery and silentLooks define the second for which a watch may withhold an answered write: a working watch
	// delivers it within some milliseconds. Checks are counted, not time, because a process that was stopped has not
	// listened.
	lookEvery   = 250 * time.Millisecond
	silentLooks = 4
	// wellLooks define the two seconds for which a watch must be open with nothing outstanding before the replica is
	// trusted again.
	wellLooks = 8
	// relistFrom is the number of silent watches in a row from which on the leases are also listed. After the first,
	// the watch only resumes at its last version.
	relistFrom = 2
	// SilentWatches is the number of silent watches in a row after which this replica counts as unable to learn of its
	// own writes by watching.
	SilentWatches = 3
)

// Silent returns the number of watches in a row that were ended because they did not deliver an answered write, or that
// ended at once without an event or bookmark, plus the seconds for which such a write waited for a watch to open. Any
// delivery resets it.
func (f *Feed) Silent() int { return int(f.silent.Load()) }

// listen ends silent watches until the context ends.
func (f *Feed) listen(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var l looks
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.looks.Add(1)
			l.check(f)
		}
	}
}

// looks has the observations of a watch at the last checks.
type looks struct {
	open  *watcher
	heard int64
	// silent is the number of checks in a row with an outstanding write. well is the number of checks in a row at which
	// an open watch had delivered everything.
	silent, well int
}

func (l *looks) check(f *Feed) {
	w, now := f.open.Load(), f.heard.Load()
	behind := f.client.counts.answered.Load() > f.client.index.Feed.Seen()
	another := w != nil && w != l.open
	if behind || another || w == nil {
		l.well = 0
	} else if l.well++; l.well == wellLooks {
		// The next write shows whether the watch delivers. In a quiet cluster, the next event or bookmark may be a
		// minute away.
		f.silent.CompareAndSwap(SilentWatches, SilentWatches-1)
	}
	if !behind || another || now != l.heard || !f.Synced() {
		l.open, l.heard, l.silent = w, now, 0
		return
	}
	l.open = w
	switch l.silent++; {
	case w != nil && l.silent == silentLooks && !failpoint.Broken("silence"):
		f.silences.Add(1)
		w.end(f.fallsSilent() >= relistFrom)
	case w == nil && l.silent%silentLooks == 0: // no watch can be opened
		f.fallsSilent()
	}
}

// over records that the stream of a watch has ended. A watch that ends within a second without delivering anything
// counts as silent, too: if that happens again and again, only lists show what was written, seconds apart.
func (f *Feed) over(w *watcher, delivered bool) {
	if !delivered && !w.ended.Load() && f.looks.Load()-w.opened < silentLooks {
		f.fallsSilent()
	}
}

// fallsSilent counts another silent second, up to SilentWatches.
func (f *Feed) fallsSilent() int32 {
	for {
		n := f.silent.Load()
		if more := min(n+1, SilentWatches); f.silent.CompareAndSwap(n, more) {
			return more
		}
	}
}

// answers records the version that a write got.
func (n *counts) answers(version uint64) {
	for {
		known := n.answered.Load()
		if version <= known || n.answered.CompareAndSwap(known, version) {
			return
		}
	}
}

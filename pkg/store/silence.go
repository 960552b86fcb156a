package store

import (
	"context"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
)

// A watch can stand and deliver nothing: a connection that something on the way holds, an API server whose cache does
// not follow. Nobody else would notice for minutes, and meanwhile no write is confirmed. Its own writes show this
// replica what the watch must deliver.
const (
	// lookEvery and silentLooks make the second that a watch may keep back a write which was answered: one that follows
	// delivers it within some milliseconds. Looks are counted, not time: a process that was stopped has not listened.
	lookEvery   = 250 * time.Millisecond
	silentLooks = 4
	// wellLooks make the two seconds that a watch must stand with nothing outstanding before the replica is trusted
	// again.
	wellLooks = 8
	// relistFrom is the watch in a row, ended for its silence, from which on the leases are listed, too. The first is
	// only taken up where it stopped.
	relistFrom = 2
	// SilentWatches in a row mean that this replica does not learn of its own writes by watching.
	SilentWatches = 3
)

// Silent returns how many watches in a row were ended because they did not deliver a write that was answered, or ended
// at once without an event or bookmark, and seconds that such a write waited for a watch to open. Whatever a watch
// delivers ends the row.
func (f *Feed) Silent() int { return int(f.silent.Load()) }

// listen ends watches that say nothing, until the context ends.
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

// looks has what was seen of a watch at the last looks.
type looks struct {
	open  *watcher
	heard int64
	// silent are the looks in a row at which a write was outstanding, well those at which an open watch had delivered
	// all.
	silent, well int
}

func (l *looks) check(f *Feed) {
	w, now := f.open.Load(), f.heard.Load()
	behind := f.client.counts.answered.Load() > f.client.index.Feed.Seen()
	another := w != nil && w != l.open
	if behind || another || w == nil {
		l.well = 0
	} else if l.well++; l.well == wellLooks {
		// The next write shows whether it delivers. In a quiet cluster the next event or bookmark is a minute away.
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
	case w == nil && l.silent%silentLooks == 0: // none can be opened
		f.fallsSilent()
	}
}

// over records that the stream of a watch has come to its end. One that ends within a second, and has delivered
// nothing, is silent, too: where that happens again and again, lists alone show what was written, seconds apart.
func (f *Feed) over(w *watcher, delivered bool) {
	if !delivered && !w.ended.Load() && f.looks.Load()-w.opened < silentLooks {
		f.fallsSilent()
	}
}

// fallsSilent counts another silent second, up to those that mean trouble.
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

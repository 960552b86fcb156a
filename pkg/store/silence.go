package store

import (
	"context"
	"time"
)

// A watch can stand and say nothing: a connection that something on the way holds, an API server whose cache does not follow.
// Nobody else would notice for minutes, and meanwhile no write is confirmed. Its own writes tell this replica what the watch
// must deliver.
const (
	// lookEvery and silentLooks make the second that a watch may keep back a write which was answered: one that follows
	// delivers it within some milliseconds. Looks are counted, not time: a process that was stopped has not listened.
	lookEvery   = 250 * time.Millisecond
	silentLooks = 4
	// relistFrom is the watch in a row, ended for its silence, from which on the leases are listed, too. The first is only taken
	// up where it stopped.
	relistFrom = 2
	// SilentWatches in a row mean that this replica does not learn of its own writes by watching.
	SilentWatches = 3
)

// Silent is how many watches in a row were ended because they did not deliver a write that was answered. Whatever a watch
// delivers ends the row.
func (f *Feed) Silent() int { return int(f.silent.Load()) }

// listen ends watches that say nothing, until the context ends.
func (f *Feed) listen(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var open *watcher
	var heard int64
	looks := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w, now := f.open.Load(), f.heard.Load()
		if w == nil || w != open || now != heard || f.client.counts.answered.Load() <= f.client.index.Seen() {
			open, heard, looks = w, now, 0
			continue
		}
		if looks++; looks == silentLooks {
			f.silences.Add(1)
			w.end(f.silent.Add(1) >= relistFrom)
		}
	}
}

// answers takes note of the version that a write got.
func (n *counts) answers(version uint64) {
	for {
		known := n.answered.Load()
		if version <= known || n.answered.CompareAndSwap(known, version) {
			return
		}
	}
}

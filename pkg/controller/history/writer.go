package history

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/history"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

const (
	// longest is the time for which a part grows. Parts are deleted as a whole, by their age.
	longest = 24 * time.Hour
	// markEvery is the interval in which a part records the progress of the watch without changes.
	markEvery = 5 * time.Minute
	// atOnce bounds the records that are packed at once.
	atOnce = 4096
	// writeTime bounds one round of writing, lastTime the round at the end of a term.
	writeTime, lastTime = 30 * time.Second, 2 * time.Second
)

// writer writes the history for one term of the leader.
type writer struct {
	*Recorder
	authors authors
	// names are the names of all parts, sorted; nil before they were read.
	names []string
	// stored is the growing part; nil if the next record begins a new one. part has its records.
	stored *v1.BCSNetHistory
	part   *history.Part
	// seen is the version that the watch had reached before the last round. All its changes are stored or wait to be.
	seen     uint64
	restarts uint64
	marked   time.Time
	failing  bool
}

// Start writes until the context ends, which ends the leader's term, and once more after that.
func (r *Recorder) Start(ctx context.Context) error {
	if !leadership.AwaitReady(ctx, r.Ready) {
		return nil
	}
	w := &writer{Recorder: r, authors: authors{live: r.Live}, restarts: r.Restarts()}
	defer r.follow()
	leadership.Every(ctx, r.Every, func() { w.round(ctx, writeTime) })
	w.round(context.WithoutCancel(ctx), lastTime)
	return nil
}

func (w *writer) round(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := w.write(ctx)
	if err != nil && !w.failing {
		w.Log.Warn("the history cannot be written; it is tried again", "error", err)
	}
	if err != nil {
		w.metrics.failures.Add(1)
	}
	w.failing = err != nil
}

// write stores what waits.
func (w *writer) write(ctx context.Context) error {
	now, seen := w.Now(), w.Index.Feed.Seen()
	if n := w.Restarts(); n != w.restarts {
		w.restarts, w.names = n, nil
	}
	if w.names == nil {
		if err := w.begin(ctx); err != nil {
			return err
		}
	}
	if n := w.drops(); n > 0 {
		w.put([]history.Record{gap(w.marked, now, humanize.Plural(int(min(n, 1<<30)), "record")+" dropped")})
	}
	for records := w.waiting(atOnce); len(records) > 0; records = w.waiting(atOnce) {
		if err := w.authors.fill(ctx, records, now); err != nil {
			return err
		}
		if err := w.add(ctx, records, now); err != nil {
			return err
		}
	}
	if w.stored != nil && w.seen > parseVersion(w.stored.Version) && now.Sub(w.marked) > markEvery {
		if err := w.store(ctx, w.part, now); err != nil {
			return err
		}
	}
	w.seen = seen
	return w.prune(ctx, now)
}

// add stores records in as many parts as they need.
func (w *writer) add(ctx context.Context, records []history.Record, now time.Time) error {
	for len(records) > 0 {
		if w.stored != nil && (w.part.Full() || now.Sub(timeOf(w.stored.Since)) > longest) {
			w.stored = nil
		}
		if w.stored == nil {
			w.part = &history.Part{}
		}
		next, n, err := w.part.Add(records)
		if err != nil {
			return err
		}
		if n == 0 { // none fits any more
			if w.stored == nil {
				return fmt.Errorf("a record of %s is too large", records[0].Pool)
			}
			w.stored = nil
			continue
		}
		err = w.store(ctx, next, now)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) && w.stored != nil {
			w.stored = nil // another replica has written it, or somebody has deleted it
			continue
		}
		if err != nil {
			return err
		}
		w.written(n)
		w.metrics.records.Add(uint64(n))
		records = records[n:]
	}
	return nil
}

// store writes the growing part, or creates a new one.
func (w *writer) store(ctx context.Context, next *history.Part, now time.Time) error {
	o := &v1.BCSNetHistory{ObjectMeta: metav1.ObjectMeta{Name: history.Name(now, w.Replica)},
		Since: now.UTC().Format(time.RFC3339)}
	if w.stored != nil {
		o = w.stored.DeepCopy()
	}
	data, records := next.Data()
	o.Data, o.Records, o.Until = data, int32(min(records, 1<<30)), now.UTC().Format(time.RFC3339)
	o.Version = strconv.FormatUint(w.seen, 10)
	var err error
	if w.stored != nil {
		err = w.Client.Update(ctx, o)
	} else if err = w.Client.Create(ctx, o); err == nil {
		w.names = append(w.names, o.Name)
	}
	if err != nil {
		return err
	}
	w.stored, w.part, w.marked = o, next, now
	return nil
}

// prune deletes parts that are too old or too many.
func (w *writer) prune(ctx context.Context, now time.Time) error {
	for len(w.names) > 1 {
		next, err := history.Begins(w.names[1])
		if err == nil && len(w.names) <= w.MaxParts && now.Sub(next) < w.Retention {
			break
		}
		o := &v1.BCSNetHistory{ObjectMeta: metav1.ObjectMeta{Name: w.names[0]}}
		if err := w.Client.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			return err
		}
		w.names = w.names[1:]
	}
	w.metrics.parts.Store(int64(len(w.names)))
	return nil
}

// begin reads how far the history has come, and adds what this replica has not seen: the changes that addresses
// remember, and a gap if they may not remember all.
func (w *writer) begin(ctx context.Context) error {
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(v1.GroupVersion.WithKind("BCSNetHistoryList"))
	if err := w.Live.List(ctx, &all); err != nil {
		return err
	}
	names := make([]string, 0, len(all.Items))
	for _, o := range all.Items {
		names = append(names, o.Name)
	}
	slices.Sort(names)
	var last v1.BCSNetHistory
	w.stored, w.part, w.marked = nil, &history.Part{}, w.Now()
	if len(names) > 0 {
		if err := w.Live.Get(ctx, client.ObjectKey{Name: names[len(names)-1]}, &last); err != nil {
			return err
		}
		w.marked = timeOf(last.Until)
		if part, err := history.NewPart(last.Data); err == nil {
			w.stored, w.part = &last, part
		}
	}
	version := parseVersion(last.Version)
	if version > w.Index.Feed.Seen() {
		version = 0 // the store was restored to an older state
	}
	from, fromAt := w.lead(version, timeOf(last.Until))
	w.seen = max(version, min(from, w.Index.Feed.Seen()))
	if from > version {
		records, whole := w.remembered(version, timeOf(last.Until))
		if len(names) > 0 {
			changes, err := w.authors.missed(ctx, w.Client, version, timeOf(last.Until), w.generations(last.Data))
			if err != nil {
				return err
			}
			if records = append(records, changes...); !whole {
				records = append(records, gap(w.marked, fromAt, "nobody watched"))
			}
		}
		w.put(records)
	}
	w.names = names
	return nil
}

// generations returns the newest generation of each pool in the last part and in waiting records.
func (w *writer) generations(data []byte) map[string]int64 {
	known := map[string]int64{}
	take := func(r history.Record) error {
		known[r.Pool] = max(known[r.Pool], r.Generation)
		return nil
	}
	_ = history.Read(data, take) // ignores unreadable records
	for _, r := range w.waiting(maxPending) {
		_ = take(r)
	}
	return known
}

// remembered returns the changes since from that addresses remember. Some may also wait to be written; readers drop
// duplicates. An address remembers lease.MaxHistory changes: whole is false if one may have had more, or if there are
// too many records.
func (w *writer) remembered(version uint64, from time.Time) (records []history.Record, whole bool) {
	if oldest := w.Now().Add(-w.Retention); from.Before(oldest) {
		from = oldest
	}
	whole = true
	newest := func(n int) {
		slices.SortFunc(records, history.Record.Compare)
		if len(records) > n {
			records, whole = slices.Clone(records[len(records)-n:]), false
		}
	}
	w.Index.Leases.Each(func(l lease.Lease) {
		if l.Version <= version {
			return
		}
		all := history.Remembered(l, from)
		whole = whole && len(all) < lease.MaxHistory
		if records = append(records, all...); len(records) >= maxPending {
			newest(maxPending / 2)
		}
	})
	newest(maxPending / 2)
	return records, whole
}

func gap(since, until time.Time, why string) history.Record {
	return history.Record{
		Time: until.Truncate(time.Second).UTC(), Since: since.UTC(), What: history.WhatGap, Reason: why,
	}
}

func parseVersion(s string) uint64 {
	v, _ := strconv.ParseUint(s, 10, 64) // 0 for an invalid text
	return v
}

func timeOf(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s) // zero for an invalid text
	return t
}

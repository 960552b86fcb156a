// Package history keeps the history of addresses and pools: every replica collects what its watches show, and the
// leader writes it into BCSNetHistory objects. It is beside the path of allocations: a change is offered to a queue
// that is never waited for, and what does not fit is counted and becomes a gap.
package history

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/history"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

const (
	// queued bounds the records that wait to be collected, and pending those that wait to be written.
	queued, maxPending = 8192, 32768
	// keep is the time for which a replica that does not lead keeps records: longer than a change of leaders takes.
	keep = 2 * time.Minute
)

// Config is what a recorder needs.
type Config struct {
	// Client writes parts, and Live reads them; neither keeps a copy of them.
	Client client.Client
	Live   client.Reader
	Index  *index.Index
	// Synced reports whether the index holds a full list: what it was filled with at the start is no change.
	Synced func() bool
	// Restarts counts how often the API server's store was put back to an older state.
	Restarts func() uint64
	Ready    func() error
	Now      func() time.Time
	// Retention is the time for which records are kept, MaxParts the largest number of objects.
	Retention time.Duration
	MaxParts  int
	// Every is the interval of writes; zero for ten seconds.
	Every    time.Duration
	Replica  string
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// Recorder collects the records of a replica.
type Recorder struct {
	Config

	in      chan entry
	dropped atomic.Uint64
	metrics metrics

	mu      sync.Mutex
	pending []entry
	// from is the version after which no change of an address is missing, except dropped ones. It is the highest number
	// until the lists have come. fromAt is the time at which it was set.
	from    uint64
	fromAt  time.Time
	writing bool
	// seenDropped is the number of dropped records that gaps tell of already.
	seenDropped uint64
}

// entry is a record that waits to be written. version is that of the address; 0 for pools.
type entry struct {
	version uint64
	at      time.Time
	record  history.Record
}

// New returns a recorder that hears of all changes of addresses from now on.
func New(c Config) *Recorder {
	r := &Recorder{Config: c, in: make(chan entry, queued), from: math.MaxUint64}
	if r.Every == 0 {
		r.Every = 10 * time.Second
	}
	r.metrics.register(c.Registry, &r.dropped)
	r.Index.Feed.Subscribe(r.leaseChanged)
	return r
}

// leaseChanged offers the records of a change. It is on the path of requests and waits for nothing.
func (r *Recorder) leaseChanged(was, is lease.Lease) {
	if was.Version == 0 && is.History == "" || !r.Synced() {
		return
	}
	for _, record := range history.OfLease(was, is, r.Now()) {
		r.offer(entry{max(was.Version, is.Version), time.Now(), record})
	}
}

// Pools returns the handler that hears of changes of pools.
func (r *Recorder) Pools() toolscache.ResourceEventHandler {
	changed := func(was, is *v1.BCSNetPool) {
		if record, ok := history.OfPool(was, is, r.Now()); ok {
			r.offer(entry{0, time.Now(), record})
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			if !initial {
				changed(nil, o.(*v1.BCSNetPool))
			}
		},
		UpdateFunc: func(was, is any) { changed(was.(*v1.BCSNetPool), is.(*v1.BCSNetPool)) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			if p, ok := o.(*v1.BCSNetPool); ok {
				changed(p, nil)
			}
		},
	}
}

func (r *Recorder) offer(e entry) {
	select {
	case r.in <- e:
	default:
		r.dropped.Add(1)
	}
}

// Run collects what is offered until the context ends.
func (r *Recorder) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-r.in:
			r.add(e)
		case <-tick.C:
			r.trim()
		}
	}
}

// add takes a record. Of too many the oldest go, many at once, as that moves the others.
func (r *Recorder) add(e entry) {
	const many = maxPending / 8
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending = append(r.pending, e); len(r.pending) > maxPending {
		r.forget(many)
		r.dropped.Add(many)
	}
}

// trim sets from where the records are complete once the lists have come, and forgets what is old, unless this replica
// writes.
func (r *Recorder) trim() {
	if !r.Synced() {
		return
	}
	seen, dropped := r.Index.Feed.Seen(), r.dropped.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.from == math.MaxUint64 || dropped > r.seenDropped && !r.writing {
		r.from, r.fromAt, r.seenDropped = seen, r.Now(), dropped
	}
	n := 0
	for !r.writing && n < len(r.pending) && time.Since(r.pending[n].at) > keep {
		n++
	}
	r.forget(n)
}

// forget removes the oldest records, with the lock held.
func (r *Recorder) forget(n int) {
	if n == 0 {
		return
	}
	for _, e := range r.pending[:n] {
		if e.version > r.from {
			r.from, r.fromAt = e.version, e.record.Time
		}
	}
	r.pending = append(r.pending[:0:0], r.pending[n:]...)
}

// waiting returns the oldest records that wait, at most n.
func (r *Recorder) waiting(n int) (records []history.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.pending[:min(n, len(r.pending))] {
		records = append(records, e.record)
	}
	return records
}

// written removes records that are stored: the oldest ones.
func (r *Recorder) written(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending[:0:0], r.pending[min(n, len(r.pending)):]...)
}

// lead begins or ends writing. Of what waits it leaves out what is stored already, up to a version, and for pools
// before a time; and says from when on the records are complete.
func (r *Recorder) lead(version uint64, stored time.Time) (from uint64, fromAt time.Time) {
	r.trim()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = true
	var left []entry
	for _, e := range r.pending {
		if e.version > version || e.version == 0 && !e.record.Time.Before(stored) {
			left = append(left, e)
		}
	}
	r.pending = left
	return r.from, r.fromAt
}

func (r *Recorder) follow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = false
}

// drops returns how many records were dropped since the last call.
func (r *Recorder) drops() uint64 {
	dropped := r.dropped.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	n := dropped - r.seenDropped
	r.seenDropped = dropped
	return n
}

// put adds records in front of those that wait.
func (r *Recorder) put(records []history.Record) {
	if len(records) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	first := make([]entry, 0, len(records)+len(r.pending))
	for _, record := range records {
		first = append(first, entry{math.MaxUint64, time.Now(), record})
	}
	r.pending = append(first, r.pending...)
}

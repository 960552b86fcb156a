// Package history keeps the history of addresses and pools: every replica collects the changes that its watches
// deliver, and the leader writes them into BCSNetHistory objects. Allocations never wait for it: they offer a change to
// a queue. A change for which the queue has no room is counted, and becomes a gap.
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
	// queued bounds the records in the queue, maxPending those that wait to be written.
	queued, maxPending = 8192, 32768
	// keep is the time for which a follower keeps records. It is longer than a change of leaders.
	keep = 2 * time.Minute
)

// Config has the settings of a recorder.
type Config struct {
	// Client writes parts and Live reads them. Neither caches them.
	Client client.Client
	Live   client.Reader
	Index  *index.Index
	// Synced reports whether the index has a full list. Leases of that list are not changes.
	Synced func() bool
	// Restarts returns the number of restores of the API server's store.
	Restarts func() uint64
	Ready    func() error
	Now      func() time.Time
	// Retention is the time for which records are kept, MaxParts the maximum number of objects.
	Retention time.Duration
	MaxParts  int
	// Every is the interval of writes; 0 means ten seconds.
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
	// from is the version after which all changes of addresses are known, except dropped ones; math.MaxUint64 before
	// the lists are complete. fromAt is the time at which it was set.
	from    uint64
	fromAt  time.Time
	writing bool
	// seenDropped is the number of dropped records that gaps already mention.
	seenDropped uint64
}

// entry is a record that waits to be written. version is the address's version; 0 for pools.
type entry struct {
	version uint64
	at      time.Time
	record  history.Record
}

// New returns a recorder that receives all changes of addresses from now on.
func New(c Config) *Recorder {
	r := &Recorder{Config: c, in: make(chan entry, queued), from: math.MaxUint64}
	if r.Every == 0 {
		r.Every = 10 * time.Second
	}
	r.metrics.register(c.Registry, &r.dropped)
	r.Index.Feed.Subscribe(r.leaseChanged)
	return r
}

// leaseChanged offers the records of a change. It is called in requests and never blocks.
func (r *Recorder) leaseChanged(was, is lease.Lease) {
	if was.Version == 0 && is.History == "" || !r.Synced() {
		return
	}
	for _, record := range history.OfLease(was, is, r.Now()) {
		r.offer(entry{max(was.Version, is.Version), time.Now(), record})
	}
}

// Pools returns the handler for changes of pools.
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

// Run collects the offered records until the context ends.
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

// add appends a record. If there are too many, it drops an eighth of them, because each removal moves the rest.
func (r *Recorder) add(e entry) {
	const many = maxPending / 8
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending = append(r.pending, e); len(r.pending) > maxPending {
		r.forget(many)
		r.dropped.Add(many)
	}
}

// trim sets from after the lists are complete or records were dropped. On a follower it also forgets records older than
// keep.
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

// forget removes the n oldest records. The caller must hold the lock.
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

// waiting returns at most n of the oldest waiting records.
func (r *Recorder) waiting(n int) (records []history.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.pending[:min(n, len(r.pending))] {
		records = append(records, e.record)
	}
	return records
}

// written removes the n oldest records, which are stored.
func (r *Recorder) written(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending[:0:0], r.pending[min(n, len(r.pending)):]...)
}

// lead begins writing. It drops records that are stored already: those up to a version, and records of pools from
// before a time. It returns the version and time from which on the records are complete.
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

// drops returns the number of records that were dropped since the last call.
func (r *Recorder) drops() uint64 {
	dropped := r.dropped.Load()
	r.mu.Lock()
	defer r.mu.Unlock()
	n := dropped - r.seenDropped
	r.seenDropped = dropped
	return n
}

// put inserts records before the waiting ones.
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

// metrics has the counters of the recorder.
type metrics struct {
	records, failures atomic.Uint64
	parts             atomic.Int64
}

func (m *metrics) register(r prometheus.Registerer, dropped *atomic.Uint64) {
	counter := func(name, help string, n *atomic.Uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(n.Load()) })
	}
	r.MustRegister(
		counter("bcsnet_history_records_total", "Records of the history that this replica has written.", &m.records),
		counter("bcsnet_history_dropped_total",
			"Records of the history that were dropped, because too many waited to be written; the history has a gap "+
				"there.",
			dropped),
		counter("bcsnet_history_write_failures_total",
			"Writes of the history that failed; the records wait for the next one.", &m.failures),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "bcsnet_history_parts", Help: "Objects that hold the history, as the leader counts them.",
		}, func() float64 { return float64(m.parts.Load()) }),
	)
}

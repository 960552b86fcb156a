package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Feed keeps the client's index equal to the objects by a list and a watch. client-go's Reflector drives it. Leases are
// decoded directly from the stream into the index: there is no second copy of the objects.
type Feed struct {
	client           *Client
	synced, watching atomic.Bool
	failed           atomic.Pointer[error]
	lists, watches   atomic.Uint64
	made             time.Time
	heard            atomic.Int64 // nanoseconds after made
	// consistent reports whether the last list was as new as the store, not only as new as the versions seen before.
	consistent atomic.Bool
	// lost reports whether the API server could not be reached since the last list. Its store may have been restored
	// meanwhile.
	lost atomic.Bool
	// told reports whether the store was restored since the last list began, whatever the versions say; anew reports
	// whether the last list began after that.
	told, anew atomic.Bool
	restarts   atomic.Uint64
	restored   func()
	// open is the running watch; nil if there is none.
	open atomic.Pointer[watcher]
	// looks is the number of checks by listen so far.
	looks atomic.Int64
	// silent is the number of watches in a row that delivered nothing, silences the number of all watches that were
	// ended for that.
	silent   atomic.Int32
	silences atomic.Uint64
}

// NewFeed returns the feed of a client that has an index. The client's requests must go through Restores.Wrap: without
// it, the leases are not listed after the API server was away.
func NewFeed(c *Client) *Feed {
	f := &Feed{client: c, made: time.Now(), restored: func() {}}
	c.watched = func() bool {
		w := f.open.Load()
		return w != nil && !w.ended.Load() && !f.told.Load()
	}
	c.behind = func() {
		f.told.Store(true)
		f.synced.Store(false)
		if w := f.open.Load(); w != nil {
			w.end(true)
		}
	}
	return f
}

// FeedStats are the counters of a feed.
type FeedStats struct {
	// Lists and Watches count the lists and watches that began successfully.
	Lists, Watches uint64
	// Silences is the number of watches that were ended because they did not deliver an answered write.
	Silences uint64
	// Idle is the time since the API server last sent something: a list, an event, or the bookmark that it sends about
	// every minute while nothing changes.
	Idle time.Duration
}

// Stats returns the counters.
func (f *Feed) Stats() FeedStats {
	return FeedStats{Lists: f.lists.Load(), Watches: f.watches.Load(), Silences: f.silences.Load(),
		Idle: time.Since(f.made) - time.Duration(f.heard.Load())}
}

func (f *Feed) hears() { f.heard.Store(int64(time.Since(f.made))) }

// delivered records that the watch works.
func (f *Feed) delivered() {
	f.hears()
	f.silent.Store(0)
}

// Restarts returns the number of restores of the store while the feed ran.
func (f *Feed) Restarts() uint64 { return f.restarts.Load() }

// OnRestore registers do, which is called whenever the store was restored to an older state. It must be called before
// Run.
func (f *Feed) OnRestore(do func()) { f.restored = do }

// restarted records that the store was restored.
func (f *Feed) restarted() {
	f.restarts.Add(1)
	now, quiet := f.client.Now(), ipam.ReturnTime
	f.client.counts.noticed.Store(&now)
	if f.client.counts.forgetful.Swap(false) {
		quiet = ipam.OrphanTime
	}
	f.restored()
	time.AfterFunc(quiet, f.client.index.Feed.Returned)
}

// Synced reports whether the index contains a full list.
func (f *Feed) Synced() bool { return f.synced.Load() }

// Watching reports whether a watch has begun. Writes after that reach the index.
func (f *Feed) Watching() bool { return f.watching.Load() }

// Err returns the reason why the last list or watch did not begin; nil if it did.
func (f *Feed) Err() error {
	if err := f.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *Feed) began(err error) {
	switch {
	case isRestored(err):
		f.told.Store(true)
	case errors.Is(err, ErrUnavailable), caused(err, causeAway):
		f.lost.Store(true)
	}
	if err == nil {
		f.failed.Store(nil)
		return
	}
	f.failed.Store(&err)
}

// Run feeds the index until the context ends.
func (f *Feed) Run(ctx context.Context) {
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() { f.listen(ctx) })
	cache.NewReflectorWithOptions(listWatch{f}, &item{}, sink{f}, cache.ReflectorOptions{
		Name: "bcsnetips", TypeDescription: "BCSNetIP",
		Backoff: &wait.Backoff{Duration: firstDelay, Cap: maxDelay, Factor: 2, Jitter: 0.5, Steps: math.MaxInt32},
	}).RunWithContext(ctx)
}

// Delays before another list or watch after a failure. A request waits for the watch to deliver its write, so the feed
// must return soon after the API server does: the Reflector's own delay of up to a minute is longer than a request
// lasts.
const (
	firstDelay = 100 * time.Millisecond
	maxDelay   = 3 * time.Second
)

// sink writes into the index.
type sink struct{ f *Feed }

var _ cache.ReflectorStore = sink{}

func (s sink) Add(o any) error { return s.Update(o) }

func (s sink) Update(o any) error {
	s.f.delivered()
	s.f.client.index.Feed.Watched(o.(*item).Lease)
	return nil
}

func (s sink) Delete(o any) error {
	s.f.delivered()
	s.f.client.index.Feed.WatchedDelete(o.(*item).Addr, o.(*item).Lease.Version)
	return nil
}

func (s sink) Replace(all []any, rv string) error {
	leases := make([]lease.Lease, 0, len(all))
	for _, o := range all {
		i, ok := o.(*item)
		if !ok {
			return fmt.Errorf("the list holds a %T", o)
		}
		leases = append(leases, i.Lease)
	}
	index, version := s.f.client.index, parseVersion(rv)
	restored := s.f.anew.Load() || s.f.consistent.Load() && version < index.Feed.Seen()
	if restored {
		index.Feed.ResetTo(leases, version)
	} else {
		restored = index.Feed.Replace(leases, version)
	}
	if restored {
		s.f.client.counts.answered.Store(0) // earlier writes may be lost
		s.f.restarted()
	}
	if s.f.synced.Store(true); s.f.told.Load() { // since the list began
		s.f.synced.Store(false)
	}
	s.f.hears()
	return nil
}

func (s sink) Resync() error { return nil }

// Bookmark records the progress of the watch while nothing changes.
func (s sink) Bookmark(rv string) error {
	s.f.delivered()
	s.f.client.index.Feed.Reached(parseVersion(rv))
	return nil
}

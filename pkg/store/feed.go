package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Feed keeps the client's index equal to the objects by a list and a watch. client-go's Reflector
// drives it; what it carries are leases, decoded straight from the stream, and what it fills is the
// index itself: there is no second copy of the objects.
type Feed struct {
	client           *Client
	synced, watching atomic.Bool
	failed           atomic.Pointer[error]
	lists, watches   atomic.Uint64
	made             time.Time
	heard            atomic.Int64 // nanoseconds after made
	// consistent: the last list was as new as the store, not only as what was seen before.
	consistent atomic.Bool
	// lost: the API server could not be reached since the last list. Its store may have been put back meanwhile.
	lost     atomic.Bool
	restarts atomic.Uint64
	// open is the watch that runs; nil while none does.
	open atomic.Pointer[watcher]
	// looks are those of listen so far.
	looks atomic.Int64
	// silent are the watches in a row that delivered nothing, silences all that were ended for that.
	silent   atomic.Int32
	silences atomic.Uint64
}

// NewFeed makes the feed of a client that has an index.
func NewFeed(c *Client) *Feed {
	f := &Feed{client: c, made: time.Now()}
	c.behind = func() {
		f.lost.Store(true)
		f.synced.Store(false)
		if w := f.open.Load(); w != nil {
			w.end(true)
		}
	}
	return f
}

// FeedStats are what a feed has counted since it was made.
type FeedStats struct {
	// Lists and Watches are those that began well.
	Lists, Watches uint64
	// Silences are the watches that were ended because they did not deliver a write that was answered.
	Silences uint64
	// Idle is how long ago the API server was last heard of: a list, an event, or the bookmark that it sends
	// about every minute while nothing changes.
	Idle time.Duration
}

// Stats reads the counts.
func (f *Feed) Stats() FeedStats {
	return FeedStats{Lists: f.lists.Load(), Watches: f.watches.Load(), Silences: f.silences.Load(), Idle: time.Since(f.made) - time.Duration(f.heard.Load())}
}

func (f *Feed) hears() { f.heard.Store(int64(time.Since(f.made))) }

// delivered takes note that the watch works.
func (f *Feed) delivered() {
	f.hears()
	f.silent.Store(0)
}

// Restarts counts how often the store was put back to an older state while the feed ran.
func (f *Feed) Restarts() uint64 { return f.restarts.Load() }

// restarted takes note that the store was put back.
func (f *Feed) restarted() {
	f.restarts.Add(1)
	time.AfterFunc(ipam.ReturnTime, f.client.index.Returned)
}

// Synced says whether the index holds a full list.
func (f *Feed) Synced() bool { return f.synced.Load() }

// Watching says whether a watch has begun: what is written from then on reaches the index.
func (f *Feed) Watching() bool { return f.watching.Load() }

// Err is why the last list or watch did not begin; nil when it did.
func (f *Feed) Err() error {
	if err := f.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *Feed) began(err error) {
	if errors.Is(err, ErrUnavailable) || isRestored(err) {
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

// Delays before another list or watch after one that failed. A request waits for the watch to deliver
// its write, so the feed must be back soon after the API server is: the Reflector's own delay of up to a
// minute is longer than a request lasts.
const (
	firstDelay = 100 * time.Millisecond
	maxDelay   = 3 * time.Second
)

// item carries a lease through the Reflector.
type item struct {
	ipam.Lease
	version string
}

// GetObjectKind says nothing: the Reflector knows the type by its Go type.
func (i *item) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject copies the item.
func (i *item) DeepCopyObject() runtime.Object { c := *i; return &c }

// GetObjectMeta tells the Reflector the resourceVersion.
func (i *item) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: ipam.ObjectName(i.Addr), ResourceVersion: i.version}
}

// items is a list of items.
type items struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []item
}

// DeepCopyObject copies the list.
func (l *items) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = append([]item(nil), l.Items...)
	return &c
}

type listWatch struct{ f *Feed }

var _ cache.ListerWatcherWithContext = listWatch{}

// IsWatchListSemanticsUnSupported keeps the Reflector from asking for the initial state as watch
// events: for tens of thousands of objects the list is more than twice as fast.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

func (lw listWatch) List(o metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), o)
}

func (lw listWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), o)
}

// listStall is how long a list may say nothing: the Reflector would wait for ever for one on a dead connection.
const listStall = 30 * time.Second

// ListWithContext reads all leases, in pages of one state. A relist is never older than what was seen before, or was
// answered to a write; the first list is as new as the API server can give, never "any version". So is the one after the API
// server was out of reach: one whose store was put back would have to be waited for until it has the version that was seen.
func (lw listWatch) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	params := map[string]string{}
	consistent := o.ResourceVersion == "" || o.ResourceVersion == "0" || lw.f.lost.Swap(false)
	if !consistent {
		params["resourceVersion"] = formatVersion(max(parseVersion(o.ResourceVersion), lw.f.client.counts.answered.Load()))
		params["resourceVersionMatch"] = string(metav1.ResourceVersionMatchNotOlderThan)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stalls := time.AfterFunc(listStall, cancel)
	defer stalls.Stop()
	list, meta := &items{}, metav1.ListMeta{}
	for next := true; next; {
		var err error
		request := lw.f.client.lists().MaxRetries(0) // the Reflector knows better when
		meta, err = lw.f.client.page(ctx, request, lw.f.client.pageSize, params, func(l ipam.Lease) error {
			stalls.Reset(listStall)
			list.Items = append(list.Items, item{Lease: l})
			return nil
		})
		if err != nil {
			lw.f.began(err)
			return nil, err
		}
		next = meta.Continue != ""
		params = map[string]string{"continue": meta.Continue} // which names the state, too
	}
	lw.f.began(nil)
	lw.f.lists.Add(1)
	list.ResourceVersion = meta.ResourceVersion
	lw.f.consistent.Store(consistent)
	return list, nil
}

// watchStall is how long the API server may take to begin a watch.
const watchStall = 10 * time.Second

// errNoWatch ends the wait for a watch that does not begin.
var errNoWatch = fmt.Errorf("%w: the watch did not begin within %s", ErrUnavailable, watchStall)

// WatchWithContext begins a watch.
func (lw listWatch) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	running := ctx
	ctx, stop := context.WithCancel(ctx)
	reading, cut := context.WithCancel(ctx)
	stalls := time.AfterFunc(watchStall, cut)
	request := lw.f.client.rest.Get().Resource(v1.IPResource).MaxRetries(0).
		Param("watch", "true").
		Param("allowWatchBookmarks", "true").
		Param("resourceVersion", o.ResourceVersion)
	if o.TimeoutSeconds != nil {
		request = request.Param("timeoutSeconds", strconv.FormatInt(*o.TimeoutSeconds, 10)).
			Timeout(time.Duration(*o.TimeoutSeconds) * time.Second)
	}
	body, err := stream(reading, request)
	if began := stalls.Stop(); err != nil && !began {
		err = errNoWatch
	}
	if lw.f.began(err); err != nil {
		cut()
		stop()
		if isRestored(err) {
			lw.f.synced.Store(false)
		}
		return nil, err
	}
	lw.f.watches.Add(1)
	lw.f.watching.Store(true)
	w := &watcher{events: make(chan watch.Event), done: ctx.Done(), stop: stop, cut: cut, opened: lw.f.looks.Load()}
	lw.f.open.Store(w)
	go func() {
		defer lw.f.open.CompareAndSwap(w, nil)
		if delivered := w.read(body); running.Err() == nil {
			lw.f.over(w, delivered)
		}
	}()
	return w, nil
}

func stream(ctx context.Context, request *rest.Request) (io.ReadCloser, error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, readError(err)
	}
	return body, nil
}

// watcher decodes a watch stream.
type watcher struct {
	events chan watch.Event
	done   <-chan struct{}
	stop   context.CancelFunc
	// cut ends the stream alone.
	cut    context.CancelFunc
	relist atomic.Bool
	// ended: another one is wanted.
	ended atomic.Bool
	// opened is at which look it was opened.
	opened int64
}

// end has another watch begin; relist: after a list.
func (w *watcher) end(relist bool) {
	w.relist.Store(relist)
	w.ended.Store(true)
	w.cut()
}

func (w *watcher) Stop()                          { w.stop() }
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

// frame is one watch event, decoded in one pass. The object of an ERROR is a metav1.Status, whose
// fields stand beside those of a BCSNetIP; only its "status", a word, does not fit.
type frame struct {
	Type   watch.EventType `json:"type"`
	Object struct {
		v1.BCSNetIP `json:",inline"`
		Code        int32               `json:"code"`
		Reason      metav1.StatusReason `json:"reason"`
		Message     string              `json:"message"`
	} `json:"object"`
}

// read tells what comes until the stream ends; delivered: something came.
func (w *watcher) read(body io.ReadCloser) (delivered bool) {
	defer body.Close()
	defer w.cut()
	defer close(w.events)
	defer func() {
		if w.relist.Load() {
			w.tell(watch.Event{Type: watch.Error, Object: &metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
				Message: "the watch did not deliver a write that was answered",
			}})
		}
	}()
	d := newDecoder(json.NewDecoder(body))
	for {
		var f frame
		foreign, err := d.decode(&f)
		var mismatch *json.UnmarshalTypeError
		if err != nil && (f.Type != watch.Error || !errors.As(err, &mismatch)) {
			return delivered // the stream ended; the Reflector takes it up again
		}
		delivered = delivered || f.Type != watch.Error
		e, ok := f.event(foreign)
		if !ok {
			continue
		}
		if !w.tell(e) {
			return delivered
		}
	}
}

// tell hands an event to the Reflector; false when that has stopped.
func (w *watcher) tell(e watch.Event) bool {
	select {
	case w.events <- e:
		return true
	case <-w.done:
		return false
	}
}

func (f *frame) event(foreign bool) (watch.Event, bool) {
	switch f.Type {
	case watch.Error:
		return watch.Event{Type: watch.Error, Object: &metav1.Status{
			Status: metav1.StatusFailure, Code: f.Object.Code, Reason: f.Object.Reason, Message: f.Object.Message,
		}}, true
	case watch.Bookmark:
		return watch.Event{Type: watch.Bookmark, Object: &item{version: f.Object.ResourceVersion}}, true
	default:
		l, err := Lease(&f.Object.BCSNetIP, foreign)
		if err != nil {
			return watch.Event{}, false
		}
		return watch.Event{Type: f.Type, Object: &item{Lease: l, version: f.Object.ResourceVersion}}, true
	}
}

// sink fills the index.
type sink struct{ f *Feed }

var _ cache.ReflectorStore = sink{}

func (s sink) Add(o any) error { return s.Update(o) }

func (s sink) Update(o any) error {
	s.f.delivered()
	s.f.client.index.Watched(o.(*item).Lease)
	return nil
}

func (s sink) Delete(o any) error {
	s.f.delivered()
	s.f.client.index.WatchedDelete(o.(*item).Addr, o.(*item).Lease.Version)
	return nil
}

func (s sink) Replace(all []any, rv string) error {
	leases := make([]ipam.Lease, 0, len(all))
	for _, o := range all {
		i, ok := o.(*item)
		if !ok {
			return fmt.Errorf("the list holds a %T", o)
		}
		leases = append(leases, i.Lease)
	}
	if index, version := s.f.client.index, parseVersion(rv); s.f.consistent.Load() && version < index.Seen() {
		s.f.client.counts.answered.Store(0) // what was answered before may be lost
		index.Restart(leases, version)
		s.f.restarted()
	} else if index.Replace(leases, version) {
		s.f.restarted()
	}
	s.f.synced.Store(true)
	s.f.hears()
	return nil
}

func (s sink) Resync() error { return nil }

// Bookmark takes note of how far the watch has come while nothing changed.
func (s sink) Bookmark(rv string) error {
	s.f.delivered()
	s.f.client.index.Reached(parseVersion(rv))
	return nil
}

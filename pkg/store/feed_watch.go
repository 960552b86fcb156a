package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// watchStall bounds the time in which the API server must begin a watch.
const watchStall = 10 * time.Second

// errNoWatch is the error of a watch that does not begin in time.
var errNoWatch = fmt.Errorf("%w: the watch did not begin within %s", ErrUnavailable, watchStall)

// WatchWithContext begins a watch.
func (lw listWatch) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	running := ctx
	ctx, stop := context.WithCancel(ctx)
	reading, cut := context.WithCancel(ctx)
	stalls := time.AfterFunc(watchStall, cut)
	request := lw.f.client.rest.Get().Resource(v1.IPResource).MaxRetries(0).
		Param("watch", "true").Param("allowWatchBookmarks", "true").Param("resourceVersion", o.ResourceVersion)
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
	if lw.f.told.Load() { // while no watch was open that could be ended for it
		w.end(true)
	}
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
	// cut ends only the stream.
	cut    context.CancelFunc
	relist atomic.Bool
	// ended reports whether another watch must begin.
	ended atomic.Bool
	// opened is the number of the check at which the watch was opened.
	opened int64
}

// end ends the watch, so that the Reflector begins another one; with relist, after a list.
func (w *watcher) end(relist bool) {
	w.relist.Store(relist)
	w.ended.Store(true)
	w.cut()
}

func (w *watcher) Stop()                          { w.stop() }
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

// frame is one watch event, decoded in one pass. The object of an ERROR is a metav1.Status, whose fields do not
// conflict with those of a BCSNetIP, except for its "status", which is a word.
type frame struct {
	Type   watch.EventType `json:"type"`
	Object struct {
		v1.BCSNetIP `json:",inline"`
		Code        int32               `json:"code"`
		Reason      metav1.StatusReason `json:"reason"`
		Message     string              `json:"message"`
	} `json:"object"`
}

// read delivers events until the stream ends; delivered reports whether there were any.
func (w *watcher) read(body io.ReadCloser) (delivered bool) {
	defer body.Close()
	defer w.cut()
	defer close(w.events)
	defer func() {
		if w.relist.Load() {
			w.deliver(watch.Event{Type: watch.Error, Object: &metav1.Status{
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
			return delivered // the stream ended; the Reflector continues
		}
		delivered = delivered || f.Type != watch.Error
		e, ok := f.event(foreign)
		if !ok {
			continue
		}
		if !w.deliver(e) {
			return delivered
		}
	}
}

// deliver passes an event to the Reflector; false if the Reflector has stopped.
func (w *watcher) deliver(e watch.Event) bool {
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

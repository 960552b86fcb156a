package apiserver

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// watcher is a watch under way.
type watcher struct {
	target
	match  func(*object) bool
	from   uint64 // what is no newer has been sent
	stream *stream
	lag    Lag
	again  *time.Timer // for the next bookmark
}

// watch begins a watch. Events since the requested version come at once.
func (s *Server) watch(r *http.Request, t target, lag Lag) *http.Response {
	match, p := t.selects()
	if p != nil {
		return s.refuse(r, p)
	}
	asked, _ := strconv.ParseUint(t.query.Get("resourceVersion"), 10, 64)
	w := &watcher{target: t, match: match, from: max(asked, 1), lag: lag, stream: newStream()}
	resp := s.header(r, http.StatusOK)
	resp.ContentLength, resp.Body = -1, w.stream
	initial := isTrue(t.query.Get("sendInitialEvents"))
	switch {
	case asked == 0 || initial:
		s.present(w, initial)
	case asked < s.first:
		w.send(watch.Error, "", expired(s.first, asked).body())
		w.stream.end()
		return resp
	default:
		for _, e := range s.events {
			w.hear(e)
		}
	}
	s.watchers = append(s.watchers, w)
	var timers []*time.Timer
	if seconds, _ := strconv.Atoi(t.query.Get("timeoutSeconds")); seconds > 0 {
		timers = append(timers, time.AfterFunc(time.Duration(seconds)*time.Second, w.stream.end))
	}
	if isTrue(t.query.Get("allowWatchBookmarks")) && s.Bookmarks > 0 {
		w.again = time.AfterFunc(s.Bookmarks, func() { s.bookmark(w) })
		timers = append(timers, w.again)
	}
	unhook := context.AfterFunc(r.Context(), func() { w.stream.fail(r.Context().Err()) })
	w.stream.closed = func() {
		unhook()
		for _, timer := range timers {
			timer.Stop()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watchers = slices.DeleteFunc(s.watchers, func(other *watcher) bool { return other == w })
	}
	return resp
}

// present sends all existing objects to a watch.
func (s *Server) present(w *watcher, marked bool) {
	for _, key := range slices.Sorted(maps.Keys(w.kind.objects)) {
		if o := w.kind.objects[key]; w.covers(key) && w.match(o) {
			w.send(watch.Added, key, o.as(w.partial))
		}
	}
	w.from = s.version
	if marked {
		w.send(watch.Bookmark, "", w.mark(s.version, map[string]any{"k8s.io/initial-events-end": "true"}))
	}
}

func (s *Server) bookmark(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.watchers, w) {
		w.send(watch.Bookmark, "", w.mark(max(s.version, w.from), nil))
		w.again.Reset(s.Bookmarks)
	}
}

// mark returns the object of a bookmark.
func (w *watcher) mark(version uint64, annotations map[string]any) []byte {
	m := map[string]any{"resourceVersion": strconv.FormatUint(version, 10), "creationTimestamp": nil}
	if annotations != nil {
		m["annotations"] = annotations
	}
	if w.partial {
		return encode(map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": m})
	}
	return encode(map[string]any{"kind": w.kind.kind, "apiVersion": w.kind.apiVersion(), "metadata": m})
}

func (w *watcher) covers(key string) bool {
	return w.namespace == "" || strings.HasPrefix(key, w.namespace+"/")
}

// hear sends an event that concerns the watch. With selectors, an object that begins to match counts as added, and one
// that no longer matches as deleted. The caller must hold the server's lock.
func (w *watcher) hear(e event) {
	if e.kind != w.kind || e.version <= w.from {
		return
	}
	before, now := e.old, e.now
	key := ""
	for _, o := range []*object{before, now} {
		if o != nil {
			key = o.key
		}
	}
	if !w.covers(key) {
		return
	}
	was, is := before != nil && w.match(before), now != nil && w.match(now)
	switch {
	case is && was:
		w.send(watch.Modified, key, now.as(w.partial))
	case is:
		w.send(watch.Added, key, now.as(w.partial))
	case was && now == nil:
		w.send(watch.Deleted, key, before.as(w.partial))
	case was: // in its earlier state, at the version of the change
		data := clone(before.data).(map[string]any)
		meta(data)["resourceVersion"] = strconv.FormatUint(e.version, 10)
		gone := &object{data: data, body: encode(data)}
		w.send(watch.Deleted, key, gone.as(w.partial))
	}
}

func (w *watcher) send(what watch.EventType, key string, object []byte) {
	var late time.Duration
	if w.lag != nil {
		late = w.lag(w.kind.resource, key)
	}
	w.stream.send(fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", what, object), late)
}

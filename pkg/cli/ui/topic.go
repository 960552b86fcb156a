package ui

import (
	"context"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/follow"
)

// topic is a followed page in one language.
type topic struct {
	stop    context.CancelFunc
	ended   chan struct{}
	viewers map[*viewer]bool
	last    *frame
}

// key names a topic.
func key(page string, r *http.Request) string { return language(r) + " " + page }

// join adds a viewer to a page. The first viewer starts the topic.
func (l *live) join(page string, v *viewer, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[key(page, r)]
	if t == nil {
		ctx, stop := context.WithCancel(l.context)
		t = &topic{stop: stop, ended: make(chan struct{}), viewers: map[*viewer]bool{}}
		l.topics[key(page, r)] = t
		go func() {
			defer close(t.ended)
			l.run(ctx, page, t, r)
		}()
	}
	t.viewers[v] = true
	if t.last != nil {
		v.take(page, t.last)
	}
}

// leave removes a viewer from a page. The last one stops the topic.
func (l *live) leave(page string, v *viewer, r *http.Request) {
	l.mu.Lock()
	t := l.topics[key(page, r)]
	delete(t.viewers, v)
	last := len(t.viewers) == 0
	if last {
		delete(l.topics, key(page, r))
		t.stop()
	}
	l.mu.Unlock()
	if last {
		<-t.ended
	}
}

// run makes the page of a topic again whenever an object on it changes.
func (l *live) run(ctx context.Context, page string, t *topic, by *http.Request) {
	kind, r, err := l.server.kinds.find(page, by)
	if err != nil {
		l.send(page, t, &frame{problem: err.Error()})
		return
	}
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	following, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watched := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		began := time.Now()
		p, err := l.server.build(ctx, r.WithContext(ctx), kind, l.visitor)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			text, _, _ := l.server.problem(err)
			l.send(page, t, &frame{problem: text})
			time.AfterFunc(retry, func() { mark(changed) }) // it may be back
		default:
			if !watched { // changes before the watch began cause the next version
				watched = true
				for _, src := range p.Watch {
					watching.Go(func() { l.watch(following, src, changed) })
				}
			}
			l.send(page, t, &frame{sections: p.Sections})
		}
		pause := max(frameEvery, share*time.Since(began))
		if err != nil { // it took long to learn that, and it may be over
			pause = min(pause, retry)
		}
		rest := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			rest.Stop()
			return
		case <-rest.C:
		}
	}
}

// send passes a frame to all viewers of a page.
func (l *live) send(page string, t *topic, f *frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.last = f
	for v := range t.viewers {
		v.take(page, f)
	}
}

func mark(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// watch signals that objects changed. It resumes from the last seen version; if the API server no longer has that
// version, it signals a change.
func (l *live) watch(ctx context.Context, src follow.Source, changed chan<- struct{}) {
	c, err := l.visitor.app.Dynamic()
	if err != nil {
		return // as the page itself has found
	}
	api, version := c.Resource(src.Kind).Namespace(src.Namespace), ""
	for ctx.Err() == nil {
		if version == "" {
			which := src.Which
			which.Limit = 1
			var some *unstructured.UnstructuredList
			if some, err = api.List(ctx, which); err == nil {
				version = some.GetResourceVersion()
			}
			mark(changed)
		}
		if version != "" {
			if err = follows(ctx, api, src.Which, &version, changed); gone(err) {
				version = ""
			}
		}
		pause := time.Second
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			pause = beat
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// gone reports whether the API server no longer has the versions for a watch.
func gone(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// follows watches objects from a version until the watch ends. It updates the version.
func follows(
	ctx context.Context, api dynamic.ResourceInterface, which metav1.ListOptions, version *string,
	changed chan<- struct{},
) error {
	which.ResourceVersion, which.AllowWatchBookmarks = *version, true
	events, err := api.Watch(ctx, which)
	if err != nil {
		mark(changed) // the page shows the error if it can no longer be read
		return err
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		if e.Type == watch.Error {
			return apierrors.FromObject(e.Object)
		}
		if o, ok := e.Object.(metav1.Object); ok {
			*version = o.GetResourceVersion()
		}
		if e.Type != watch.Bookmark {
			mark(changed)
		}
	}
	return nil
}

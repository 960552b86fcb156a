package ui

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
)

// watching waits for changes of the objects of a page. A watch ends with the first change: until the page is made
// again, further changes cost nothing, here and at the API server. It begins again from the versions that were taken
// before the page was made.
type watching struct {
	context context.Context // of the watches
	cancel  context.CancelFunc
	app     *app.App
	running sync.WaitGroup
	wake    chan struct{}

	subjects []*subject
}

// subject is one kind of objects of a page.
type subject struct {
	follow.Source
	mu    sync.Mutex
	ended bool // the watch
}

// scope is a kind of objects, in one namespace or in all.
type scope struct {
	schema.GroupVersionResource
	namespace string
}

func scopeOf(s follow.Source) scope { return scope{s.Kind, s.Namespace} }

// versions has the versions of scopes at a time; empty for those that cannot be read.
type versions map[scope]string

func newWatching(ctx context.Context, a *app.App) *watching {
	w := &watching{app: a, wake: make(chan struct{}, 1)}
	w.context, w.cancel = context.WithCancel(ctx)
	return w
}

// stop ends all watches.
func (w *watching) stop() {
	w.cancel()
	w.running.Wait()
}

// changed waits for a change, or for another signal. It returns false if the context ends.
func (w *watching) changed(ctx context.Context, other <-chan time.Time) bool {
	select {
	case <-w.wake:
	case <-other:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// due returns the scopes of the objects that have changed.
func (w *watching) due() (out []scope) {
	for _, src := range w.subjects {
		if src.mu.Lock(); src.ended {
			out = append(out, scopeOf(src.Source))
		}
		src.mu.Unlock()
	}
	return out
}

// from watches from the versions of a page that was made. Watches that run continue.
func (w *watching) from(p *page) {
	if w.subjects == nil {
		for _, one := range p.Watch {
			w.subjects = append(w.subjects, &subject{Source: one, ended: true})
		}
	}
	for _, src := range w.subjects {
		version, asked := p.versions[scopeOf(src.Source)]
		src.mu.Lock()
		switch {
		case !src.ended:
		case !asked: // it ended while the page was made: the next page has the version
			w.signal()
		case version == "": // it cannot be read
			time.AfterFunc(retry, w.signal)
		default:
			src.ended = false
			w.running.Go(func() { w.watch(src, version) })
		}
		src.mu.Unlock()
	}
}

func (w *watching) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// watch signals the first change of the objects of a subject, and ends. It also signals if the watch ends otherwise:
// the page shows the error if the objects can no longer be read.
func (w *watching) watch(src *subject, version string) {
	defer func() {
		src.mu.Lock()
		src.ended = true
		src.mu.Unlock()
		w.signal()
	}()
	c, err := w.app.Dynamic()
	if err != nil {
		return // as the page itself will find
	}
	changed, err := first(w.context, c.Resource(src.Kind).Namespace(src.Namespace), src.Which, version)
	pause := time.Second
	switch {
	case changed, apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		pause = beat
	}
	select {
	case <-w.context.Done():
	case <-time.After(pause):
	}
}

// first watches objects from a version until one changes. changed is false if the watch ends before.
func first(
	ctx context.Context, api dynamic.ResourceInterface, which metav1.ListOptions, version string,
) (changed bool, err error) {
	which.ResourceVersion = version
	events, err := api.Watch(ctx, which)
	if err != nil {
		return false, err
	}
	defer events.Stop()
	if e, ok := <-events.ResultChan(); ok {
		if e.Type == watch.Error {
			return false, apierrors.FromObject(e.Object)
		}
		return true, nil
	}
	return false, nil
}

package follow

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// Change is one change of an object. All existing objects come first, as Added. A Bookmark marks the end of these.
type Change struct {
	Source int
	Kind   watch.EventType
	Name   string
	// Object is nil if the object's deletion was noticed only by a later list.
	Object *unstructured.Unstructured
}

// Follower lists and watches objects of one kind. After a break it resumes the watch, or lists again if that is no
// longer possible.
type Follower struct {
	*app.App
	api    dynamic.ResourceInterface
	which  metav1.ListOptions
	source int
	out    chan<- Change
	told   *warnOnce
	// seen has the versions of the objects that were sent.
	seen    map[string]string
	version string
}

// retryDelay is the time before another attempt if the API server does not answer. After settleDelay a new watch counts
// as working.
const retryDelay, settleDelay = time.Second, 100 * time.Millisecond

func startFollower(s *app.App, from Source, number int, out chan<- Change, told *warnOnce) (*Follower, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	f := NewFollower(s, c.Resource(from.Kind).Namespace(from.Namespace), from.Which, number, out)
	f.told = told
	return f, nil
}

// NewFollower returns a follower of the selected objects of an API. Its changes have the number source.
func NewFollower(
	s *app.App, api dynamic.ResourceInterface, which metav1.ListOptions, source int, out chan<- Change,
) *Follower {
	return &Follower{
		App: s, api: api, which: which, source: source, out: out, told: &warnOnce{of: map[int]bool{}},
		seen: map[string]string{},
	}
}

// Run runs until the context ends. It fails if the first list fails, or if access is denied later. After other errors
// it tries again.
func (f *Follower) Run(ctx context.Context) error {
	if err := f.list(ctx); err != nil {
		return resource.Explain(f.App, err)
	}
	if err := f.send(ctx, Change{Kind: watch.Bookmark}); err != nil {
		return err
	}
	for ctx.Err() == nil {
		began := time.Now()
		err := f.watch(ctx)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			err = f.list(ctx)
		}
		switch {
		case err == nil:
			if time.Since(began) >= retryDelay {
				continue
			} // a watch that ends at once may do so again
		case ctx.Err() != nil:
			return ctx.Err()
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return resource.Explain(f.App, err)
		case f.told.about(f.source, true):
			f.Say.Warn("changes cannot be read at the moment, trying again: %v", resource.Explain(f.App, err))
		}
		select {
		case <-time.After(retryDelay):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// list sends the differences from the objects that were sent before.
func (f *Follower) list(ctx context.Context) error {
	options, left := f.which, map[string]string{}
	options.Limit = resource.PageSize
	for {
		page, err := f.api.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			o := &page.Items[i]
			left[resource.KeyOf(o)] = o.GetResourceVersion()
			if err := f.pass(ctx, o); err != nil {
				return err
			}
		}
		f.version = page.GetResourceVersion()
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	for name := range f.seen {
		if left[name] != "" {
			continue
		}
		if err := f.send(ctx, Change{Kind: watch.Deleted, Name: name}); err != nil {
			return err
		}
		delete(f.seen, name)
	}
	return nil
}

// watch sends changes until the watch ends. The end of a watch is not an error.
func (f *Follower) watch(ctx context.Context) error {
	options := f.which
	options.ResourceVersion, options.AllowWatchBookmarks = f.version, true
	events, err := f.api.Watch(ctx, options)
	if err != nil {
		return err
	}
	defer events.Stop()
	// A watch without an early error works.
	fine := time.AfterFunc(settleDelay, func() { f.told.about(f.source, false) })
	defer fine.Stop()
	for e := range events.ResultChan() {
		o, ok := e.Object.(*unstructured.Unstructured)
		if e.Type == watch.Error || !ok {
			fine.Stop()
			return apierrors.FromObject(e.Object)
		}
		switch e.Type {
		case watch.Bookmark:
		case watch.Deleted:
			delete(f.seen, resource.KeyOf(o))
			err = f.send(ctx, Change{Kind: watch.Deleted, Name: resource.KeyOf(o), Object: o})
		default:
			err = f.pass(ctx, o)
		}
		if err != nil {
			return err
		}
		f.version = o.GetResourceVersion()
	}
	f.told.about(f.source, false)
	return nil
}

// pass sends an object if it is new or has changed.
func (f *Follower) pass(ctx context.Context, o *unstructured.Unstructured) error {
	before, known := f.seen[resource.KeyOf(o)]
	kind := watch.Added
	switch {
	case known && before == o.GetResourceVersion():
		return nil
	case known:
		kind = watch.Modified
	}
	f.seen[resource.KeyOf(o)] = o.GetResourceVersion()
	return f.send(ctx, Change{Kind: kind, Name: resource.KeyOf(o), Object: o})
}

func (f *Follower) send(ctx context.Context, c Change) error {
	c.Source = f.source
	select {
	case f.out <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// warnOnce records which sources cannot be read. The user gets one warning for all sources of a list, because they
// mostly fail for the same reason.
type warnOnce struct {
	mu sync.Mutex
	of map[int]bool // sources that cannot be read
}

// about records whether a source can be read, and reports whether the user needs a warning.
func (c *warnOnce) about(source int, unread bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := unread && len(c.of) == 0
	if unread {
		c.of[source] = true
	} else {
		delete(c.of, source)
	}
	return first
}

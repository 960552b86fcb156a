package follow

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// Change is what became of an object. The first ones are all objects that there are, as Added; a Bookmark
// then says that these were all.
type Change struct {
	Source int
	Kind   watch.EventType
	Name   string
	// Object is nil when one is gone and nobody saw it go.
	Object *unstructured.Unstructured
}

// Follower reads objects of one kind, and then what becomes of them. It goes on where it was when the watch is
// cut, and reads them all again when that is no longer possible.
type Follower struct {
	*app.App
	api    dynamic.ResourceInterface
	which  metav1.ListOptions
	source int
	out    chan<- Change
	told   *warnOnce
	// seen are the versions of the objects that were passed on.
	seen    map[string]string
	version string
}

// retryDelay is how long to wait before another try when the API server does not answer, settleDelay after how long a
// watch that has begun counts as one that goes on.
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

// NewFollower returns a follower of the objects of an API that the options select. Its changes carry the number source.
func NewFollower(
	s *app.App, api dynamic.ResourceInterface, which metav1.ListOptions, source int, out chan<- Change,
) *Follower {
	return &Follower{
		App: s, api: api, which: which, source: source, out: out, told: &warnOnce{of: map[int]bool{}},
		seen: map[string]string{},
	}
}

// Run goes on until the context ends. That the objects cannot be read at first is an error; later, it tries
// again.
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
			} // else it was cut at once, which may go on like that
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

// list passes on how the objects differ from what was passed on before.
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

// watch passes on changes until the watch is cut, which is no error.
func (f *Follower) watch(ctx context.Context) error {
	options := f.which
	options.ResourceVersion, options.AllowWatchBookmarks = f.version, true
	events, err := f.api.Watch(ctx, options)
	if err != nil {
		return err
	}
	defer events.Stop()
	// One that brings no error at once can be read.
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

// pass passes on an object that is new or has changed.
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

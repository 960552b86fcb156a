package cli

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// change is what became of an object. The first ones are all objects that there are, as Added; a Bookmark
// then says that these were all.
type change struct {
	source int
	kind   watch.EventType
	name   string
	// object is nil when one is gone and nobody saw it go.
	object *unstructured.Unstructured
}

// follower reads objects of one kind, and then what becomes of them. It goes on where it was when the watch is
// cut, and reads them all again when that is no longer possible.
type follower struct {
	*app.App
	api    dynamic.ResourceInterface
	which  metav1.ListOptions
	source int
	out    chan<- change
	told   *warnOnce
	// seen are the versions of the objects that were passed on.
	seen    map[string]string
	version string
}

// keyOf tells the objects of one kind apart: by name, and by namespace where they are in one.
func keyOf(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

// retryDelay is how long to wait before another try when the API server does not answer, settleDelay after how long a watch that
// has begun counts as one that goes on.
const retryDelay, settleDelay = time.Second, 100 * time.Millisecond

func startFollower(s *app.App, from source, number int, out chan<- change, told *warnOnce) (*follower, error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, err
	}
	f := newFollower(s, c.Resource(from.kind).Namespace(from.namespace), from.which, number, out)
	f.told = told
	return f, nil
}

func newFollower(s *app.App, api dynamic.ResourceInterface, which metav1.ListOptions, source int, out chan<- change) *follower {
	return &follower{App: s, api: api, which: which, source: source, out: out, told: &warnOnce{of: map[int]bool{}}, seen: map[string]string{}}
}

// run goes on until the context ends. That the objects cannot be read at first is an error; later, it tries
// again.
func (f *follower) run(ctx context.Context) error {
	if err := f.list(ctx); err != nil {
		return explainError(f.App, err)
	}
	if err := f.send(ctx, change{kind: watch.Bookmark}); err != nil {
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
			return explainError(f.App, err)
		case f.told.about(f.source, true):
			f.Say.Warn("changes cannot be read at the moment, trying again: %v", explainError(f.App, err))
		}
		select {
		case <-time.After(retryDelay):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// list passes on how the objects differ from what was passed on before.
func (f *follower) list(ctx context.Context) error {
	options, left := f.which, map[string]string{}
	options.Limit = pageSize
	for {
		page, err := f.api.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			o := &page.Items[i]
			left[keyOf(o)] = o.GetResourceVersion()
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
		if err := f.send(ctx, change{kind: watch.Deleted, name: name}); err != nil {
			return err
		}
		delete(f.seen, name)
	}
	return nil
}

// watch passes on changes until the watch is cut, which is no error.
func (f *follower) watch(ctx context.Context) error {
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
			delete(f.seen, keyOf(o))
			err = f.send(ctx, change{kind: watch.Deleted, name: keyOf(o), object: o})
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
func (f *follower) pass(ctx context.Context, o *unstructured.Unstructured) error {
	before, known := f.seen[keyOf(o)]
	kind := watch.Added
	switch {
	case known && before == o.GetResourceVersion():
		return nil
	case known:
		kind = watch.Modified
	}
	f.seen[keyOf(o)] = o.GetResourceVersion()
	return f.send(ctx, change{kind: kind, name: keyOf(o), object: o})
}

func (f *follower) send(ctx context.Context, c change) error {
	c.source = f.source
	select {
	case f.out <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

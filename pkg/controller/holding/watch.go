package holding

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Watch watches the objects of a kind that another system brings, now or later, in the first of some versions that the
// API server serves. It is the reader and writer of these objects, too.
type Watch struct {
	client   dynamic.Interface
	log      *slog.Logger
	group    string
	resource string
	versions []string
	// served is the version that the API server serves; nil while none is known.
	served   atomic.Pointer[schema.GroupVersion]
	informer cache.SharedIndexInformer
	// absent is set when the kind was not served.
	absent atomic.Bool
	role   Role
}

// NewWatch returns a watch of a resource, which tells a handler of changes. trim leaves out of an object what nobody
// reads; nil for only the managed fields.
func NewWatch(
	c dynamic.Interface, log *slog.Logger, group, resource string, versions []string,
	trim func(*unstructured.Unstructured), changed cache.ResourceEventHandler,
) (*Watch, error) {
	w := &Watch{client: c, log: log, group: group, resource: resource, versions: versions}
	w.informer = cache.NewSharedIndexInformer(w.all(), &unstructured.Unstructured{}, 0, cache.Indexers{})
	_, err := w.informer.AddEventHandler(changed)
	return w, errors.Join(err, w.informer.SetTransform(func(o any) (any, error) {
		if u, ok := o.(*unstructured.Unstructured); ok {
			u.SetManagedFields(nil)
			if trim != nil {
				trim(u)
			}
		}
		return o, nil
	}), w.informer.SetWatchErrorHandlerWithContext(w.noticed))
}

// Start watches until the context ends.
func (w *Watch) Start(ctx context.Context) error {
	w.informer.RunWithContext(ctx)
	return nil
}

// Synced reports whether all objects were seen once.
func (w *Watch) Synced() bool { return w.informer.HasSynced() }

// Seen reports whether all objects were seen once, or there are none, as their kind is not served.
func (w *Watch) Seen() bool { return w.Synced() || w.absent.Load() && w.served.Load() == nil }

// Denied reports whether objects could not be read, because a role is missing.
func (w *Watch) Denied() bool { return w.role.Missing() }

// Get returns an object as the watch has it; nil for none. It must not be changed.
func (w *Watch) Get(name types.NamespacedName) *unstructured.Unstructured {
	o, found, err := w.informer.GetStore().GetByKey(name.String())
	if !found || err != nil {
		return nil
	}
	u, _ := o.(*unstructured.Unstructured)
	return u
}

// All returns all objects as the watch has them. They must not be changed.
func (w *Watch) All() (all []*unstructured.Unstructured) {
	for _, o := range w.informer.GetStore().List() {
		if u, ok := o.(*unstructured.Unstructured); ok {
			all = append(all, u)
		}
	}
	return all
}

// errNotServed means that the API server serves none of the versions.
var errNotServed = errors.New("the API server does not serve the kind")

// Version returns the group and version that the API server serves; it asks if that is not known.
func (w *Watch) Version(ctx context.Context) (v schema.GroupVersion, err error) {
	if served := w.served.Load(); served != nil {
		return *served, nil
	}
	v.Group = w.group
	for _, v.Version = range w.versions {
		_, err := w.client.Resource(v.WithResource(w.resource)).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			w.served.Store(&v)
		}
		return v, err
	}
	return v, errNotServed
}

// At returns what reads and writes objects of a namespace at the API server.
func (w *Watch) At(ctx context.Context, namespace string) (dynamic.ResourceInterface, error) {
	v, err := w.Version(ctx)
	if err != nil {
		return nil, err
	}
	return w.client.Resource(v.WithResource(w.resource)).Namespace(namespace), nil
}

// Live reads an object from the API server; nil if there is none. A kind that is not served is an error.
func (w *Watch) Live(ctx context.Context, name types.NamespacedName) (*unstructured.Unstructured, error) {
	at, err := w.At(ctx, name.Namespace)
	if err != nil {
		return nil, err
	}
	u, err := at.Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return nil, errNotServed
	case apierrors.IsNotFound(err):
		return nil, nil
	}
	return u, err
}

// listsFirst makes an informer start with a list: after a failed start with events, its wait does not end with its
// context.
type listsFirst struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported returns true.
func (listsFirst) IsWatchListSemanticsUnSupported() bool { return true }

// all lists and watches the objects of all namespaces.
func (w *Watch) all() cache.ListerWatcher {
	return listsFirst{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			at, err := w.At(ctx, metav1.NamespaceAll)
			if err != nil {
				return nil, err
			}
			return at.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			at, err := w.At(ctx, metav1.NamespaceAll)
			if err != nil {
				return nil, err
			}
			return at.Watch(ctx, opts)
		},
	}}
}

// noticed handles the error of a list or watch. The version is looked for again, as the kind may have been replaced.
func (w *Watch) noticed(_ context.Context, _ *cache.Reflector, err error) {
	w.served.Store(nil)
	w.absent.Store(errors.Is(err, errNotServed) || apierrors.IsNotFound(err))
	if w.role.Tried(err) {
		w.log.Warn("objects cannot be read: a role is missing", "resource", w.resource+"."+w.group, "error", err)
	}
}

// deniedTime is the time for which reads must be refused until their role counts as missing: an API server that has
// just started refuses everything until it has read the roles.
const deniedTime = 30 * time.Second

// Role tells whether the role for reading a kind is missing. Nobody must wait for the list of that kind then.
type Role struct {
	// refused is the time of the first of the last refusals in a row, in nanoseconds; 0 for none.
	refused atomic.Int64
	missing atomic.Bool
}

// Missing reports whether reads were refused for deniedTime.
func (r *Role) Missing() bool { return r.missing.Load() }

// Tried records the outcome of a read, and reports whether the role counts as missing from now on.
func (r *Role) Tried(err error) (first bool) {
	if !apierrors.IsForbidden(err) {
		r.refused.Store(0)
		return false
	}
	now := time.Now()
	r.refused.CompareAndSwap(0, now.UnixNano())
	return now.Sub(time.Unix(0, r.refused.Load())) >= deniedTime && !r.missing.Swap(true)
}

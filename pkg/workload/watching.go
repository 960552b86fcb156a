package workload

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Run watches until the context ends.
func (o *Owners) Run(ctx context.Context) error {
	o.mu.Lock()
	o.watches = ctx
	for _, k := range o.kinds {
		if k.watched || !k.discovered.IsZero() && k.nature != foreign {
			o.watch(k)
		}
	}
	o.mu.Unlock()
	<-ctx.Done()
	o.mu.Lock()
	o.watches = nil // no more watches begin
	o.mu.Unlock()
	o.parts.Wait()
	return nil
}

// watch starts to watch a kind. The caller must hold the lock.
func (o *Owners) watch(k *kind) {
	if o.watches == nil || k.resource.Empty() {
		return
	}
	ctx, cancel := context.WithCancel(o.watches)
	k.stop = cancel
	if o.Changed != nil {
		k.objects.changed = func(namespace, name string) {
			o.Changed(Workload{Group: k.group, Kind: k.kind, Namespace: namespace, Name: name})
		}
	}
	// The Reflector would log each failed attempt. Relevant failures are logged once.
	ctx = klog.NewContext(ctx, logr.Discard())
	logger := logr.Discard()
	lw := &listWatch{owners: o, kind: k}
	var expected any = &metav1.PartialObjectMetadata{}
	if k.nature == attachment {
		expected = &unstructured.Unstructured{}
	}
	r := cache.NewReflectorWithOptions(lw, expected, &k.objects, cache.ReflectorOptions{
		Logger: &logger, Name: k.resource.String(), TypeDescription: k.resource.String(),
		Backoff: &wait.Backoff{
			Duration: 500 * time.Millisecond, Cap: 10 * time.Second, Factor: 2, Jitter: 0.5, Steps: math.MaxInt32,
		},
	})
	o.parts.Go(func() {
		defer cancel()
		r.RunWithContext(ctx)
	})
}

// listWatch lists and watches the metadata of one kind, or whole IPAMClaims, and notices if that is refused or the kind
// is gone.
type listWatch struct {
	owners *Owners
	kind   *kind
}

var _ cache.ListerWatcherWithContext = (*listWatch)(nil)

// IsWatchListSemanticsUnSupported returns true, which makes the Reflector start with a list. After a failed start with
// events, its wait does not end with its context, so that the controller could not stop without an API server.
func (*listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// List lists the objects of the kind.
func (lw *listWatch) List(opts metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), opts)
}

// Watch watches the objects of the kind.
func (lw *listWatch) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), opts)
}

// ListWithContext lists the objects of the kind.
func (lw *listWatch) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	var list runtime.Object
	var err error
	if lw.kind.nature == attachment {
		list, err = lw.owners.dynamic.Resource(lw.kind.resource).List(ctx, opts)
	} else {
		list, err = lw.owners.metadata.Resource(lw.kind.resource).List(ctx, opts)
	}
	if lw.noticed(ctx, err); err != nil {
		return nil, err
	}
	return list, nil
}

// WatchWithContext watches the objects of the kind.
func (lw *listWatch) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	var w watch.Interface
	var err error
	if lw.kind.nature == attachment {
		w, err = lw.owners.dynamic.Resource(lw.kind.resource).Watch(ctx, opts)
	} else {
		w, err = lw.owners.metadata.Resource(lw.kind.resource).Watch(ctx, opts)
	}
	lw.noticed(ctx, err)
	return w, err
}

func (lw *listWatch) noticed(ctx context.Context, err error) {
	switch {
	case err == nil:
		lw.kind.forbidden.lift()
	case ctx.Err() != nil:
	case apierrors.IsNotFound(err):
		lw.owners.forget(lw.kind)
	case apierrors.IsForbidden(err):
		lw.owners.deny(lw.kind, err)
	}
}

// forget drops a kind that the API server no longer has, at least in this version. The next pod with such an owner asks
// for it again.
func (o *Owners) forget(k *kind) {
	if k.discovered.IsZero() {
		return // Kubernetes' own kinds stay
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	gk := schema.GroupKind{Group: k.group, Kind: k.kind}
	if o.kinds[gk] == k {
		delete(o.kinds, gk)
		o.log.Info("a kind of owners is gone", "resource", k.resource)
	}
	if k.stop != nil {
		k.stop()
	}
}

// forbiddenSince records when the API server first forbade reading objects of a kind. For some seconds this is a normal
// failure, because an API server that has just started refuses everything. After that it counts as permanent: no
// request is sent, and the annotations have no effect.
type forbiddenSince struct {
	since atomic.Int64 // nanoseconds of Unix time; 0 while nothing is refused
	told  atomic.Bool
}

// forbiddenGrace is longer than an API server needs to read its roles and the Reflector to retry.
const forbiddenGrace = 10 * time.Second

func (f *forbiddenSince) lasts(now time.Time) bool {
	since := f.since.Load()
	return since != 0 && now.Sub(time.Unix(0, since)) >= forbiddenGrace
}

func (f *forbiddenSince) lift() {
	f.since.Store(0)
	f.told.Store(false)
}

// deny records that objects of a kind may not be read, and logs it once if that lasts.
func (o *Owners) deny(k *kind, err error) {
	now := o.now()
	k.forbidden.since.CompareAndSwap(0, now.UnixNano())
	switch {
	case !k.forbidden.lasts(now) || k.forbidden.told.Swap(true):
	case k.nature == attachment:
		o.log.Warn("IPAMClaims cannot be read: pods that name one get no address until they can; see config/ipamclaims",
			"error", err)
	default:
		o.log.Warn("the owners of pods cannot be read; the annotations on them do not count until they can", "resource",
			k.resource, "error", err)
	}
}

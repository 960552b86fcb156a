package store

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// PoolLists lists pools for informers. A network that is split into blocks has thousands of pools, which are listed
// whenever a controller starts. They are decoded while the API server sends the rest. This takes half the time of
// decoding the complete list, and a third of the time of watch events (WatchList).
type PoolLists struct{ rest rest.Interface }

// NewPoolLists returns a client for lists of pools.
func NewPoolLists(cfg *rest.Config) (PoolLists, error) {
	r, err := restClient(cfg)
	return PoolLists{r}, err
}

// Over returns a ListerWatcher that lists pools in this way, and watches as before.
func (p PoolLists) Over(lw cache.ListerWatcher) cache.ListerWatcher {
	return poolListWatch{cache.ToListerWatcherWithContext(lw), p}
}

// pools is a list whose objects are not copied on their way to the cache.
type pools struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*v1.BCSNetPool
}

// DeepCopyObject copies the list.
func (l *pools) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for _, o := range l.Items {
		c.Items = append(c.Items, o.DeepCopy())
	}
	return &c
}

type poolListWatch struct {
	cache.ListerWatcherWithContext
	lists PoolLists
}

var _ cache.ListerWatcher = poolListWatch{}

// IsWatchListSemanticsUnSupported prevents the Reflector from requesting watch events instead of a list.
func (poolListWatch) IsWatchListSemanticsUnSupported() bool { return true }

func (lw poolListWatch) List(o metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), o)
}

func (lw poolListWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), o)
}

// ListWithContext lists pools.
func (lw poolListWatch) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	body, err := stream(ctx, lw.lists.rest.Get().Resource(v1.PoolResource).VersionedParams(&o, metav1.ParameterCodec))
	if err != nil {
		return nil, err
	}
	defer body.Close()
	list := &pools{}
	list.ListMeta, err = readObjects(body, func(object []byte) error {
		var o v1.BCSNetPool
		if err := json.Unmarshal(object, &o); err != nil {
			return listError(err)
		}
		list.Items = append(list.Items, &o)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

package store

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// item carries a lease through the Reflector.
type item struct {
	lease.Lease
	version string
}

// GetObjectKind returns an empty kind: the Reflector knows the type by its Go type.
func (i *item) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject copies the item.
func (i *item) DeepCopyObject() runtime.Object { c := *i; return &c }

// GetObjectMeta returns the resourceVersion, which the Reflector reads.
func (i *item) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Name: ipaddr.ObjectName(i.Addr), ResourceVersion: i.version}
}

// items is a list of items.
type items struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []item
}

// DeepCopyObject copies the list.
func (l *items) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = append([]item(nil), l.Items...)
	return &c
}

type listWatch struct{ f *Feed }

var _ cache.ListerWatcherWithContext = listWatch{}

// IsWatchListSemanticsUnSupported keeps the Reflector from asking for the initial state as watch
// events: for tens of thousands of objects the list is more than twice as fast.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

func (lw listWatch) List(o metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), o)
}

func (lw listWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), o)
}

// listStall is how long a list may say nothing: the Reflector would wait for ever for one on a dead connection.
const listStall = 30 * time.Second

// ListWithContext reads all leases, in pages of one state. A relist is never older than what was seen before, or was
// answered to a write; the first list is as new as the API server can give, never "any version". So is the one after
// the API server was out of reach: one whose store was put back would have to be waited for until it has the version
// that was seen.
func (lw listWatch) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	params := map[string]string{}
	lost, told := lw.f.lost.Swap(false), lw.f.told.Swap(false)
	consistent := o.ResourceVersion == "" || o.ResourceVersion == "0" || lost || told
	if !consistent {
		params["resourceVersion"] = formatVersion(max(parseVersion(o.ResourceVersion),
			lw.f.client.counts.answered.Load()))
		params["resourceVersionMatch"] = string(metav1.ResourceVersionMatchNotOlderThan)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stalls := time.AfterFunc(listStall, cancel)
	defer stalls.Stop()
	list, meta := &items{}, metav1.ListMeta{}
	for next := true; next; {
		var err error
		request := lw.f.client.lists().MaxRetries(0) // the Reflector knows better when
		meta, err = lw.f.client.page(ctx, request, lw.f.client.pageSize, params, func(l lease.Lease) error {
			stalls.Reset(listStall)
			list.Items = append(list.Items, item{Lease: l})
			return nil
		})
		if err != nil {
			if lost {
				lw.f.lost.Store(true)
			}
			if told {
				lw.f.told.Store(true)
			}
			lw.f.began(err)
			return nil, err
		}
		next = meta.Continue != ""
		params = map[string]string{"continue": meta.Continue} // which names the state, too
	}
	lw.f.began(nil)
	lw.f.lists.Add(1)
	list.ResourceVersion = meta.ResourceVersion
	lw.f.consistent.Store(consistent)
	lw.f.anew.Store(told)
	return list, nil
}

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

// GetObjectKind returns an empty kind: the Reflector uses the Go type.
func (i *item) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject copies the item.
func (i *item) DeepCopyObject() runtime.Object { c := *i; return &c }

// GetObjectMeta returns metadata with the resourceVersion, which the Reflector reads.
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

// IsWatchListSemanticsUnSupported prevents the Reflector from requesting the initial state as watch events: for tens of
// thousands of objects, the list is more than twice as fast.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

func (lw listWatch) List(o metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), o)
}

func (lw listWatch) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), o)
}

// listStall bounds the time for which a list may deliver nothing: the Reflector would wait for ever on a dead
// connection.
const listStall = 30 * time.Second

// ListWithContext lists all leases, in pages of one state. A repeated list is never older than a version that was seen
// or that a write got. The first list is as new as the API server can provide, never "any version". So is the list
// after the API server was unreachable: if its store was restored, the list would otherwise wait until the store
// reaches the version seen before.
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
		params = map[string]string{"continue": meta.Continue} // the token also contains the state
	}
	lw.f.began(nil)
	lw.f.lists.Add(1)
	list.ResourceVersion = meta.ResourceVersion
	lw.f.consistent.Store(consistent)
	lw.f.anew.Store(told)
	return list, nil
}

package services

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/holding"
	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/recovery"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

const (
	// notSynced is the time after which a Service is looked at again that the cache does not show as it is.
	notSynced = 2 * time.Second
	// maxLook bounds a look at a Service: others of its namespace may wait for its end.
	maxLook = time.Minute
)

// Config has the dependencies and settings of a Reconciler.
type Config struct {
	holding.Config
	// Cache and Live read Services; Client writes their status.
	Cache, Live client.Reader
	Client      client.Client
	// Owners has the annotations of namespaces.
	Owners *workload.Owners
	Events events.EventRecorder
	// DefaultClass: Services without a class are ours. KubeVIP: they get kube-vip's annotation, too.
	DefaultClass, KubeVIP bool
}

// Reconciler gives Services addresses. Finalizer and condition are written first, then the lease, then the status; what
// a killed leader left undone is done by the next one.
type Reconciler struct {
	Config
	holders   holding.Holders
	published holding.Publisher
	listed    func() bool
	role      holding.Role
	// began is the time of the first look of a term, in nanoseconds; 0 before it.
	began atomic.Int64
	// sharing is held while a Service joins or leaves those of its namespace that share addresses.
	sharing sync.Mutex
}

// Add makes the leader give Services addresses.
func Add(ctx context.Context, mgr ctrl.Manager, o Config) (r *Reconciler, err error) {
	r = &Reconciler{
		Config: o, holders: holding.Holders{Config: o.Config, Kind: workload.OwnerService},
		published: holding.Publisher{What: "the status of Services", Log: o.Log},
	}
	r.holders.Reconcile, r.holders.Known = r.reconcile, r.known
	if err := r.holders.Setup(ctx, mgr, nil); err != nil {
		return nil, err
	}
	r.listed, err = informers.Watch(ctx, mgr.GetCache(), &corev1.Service{}, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { r.changed(nil, o) },
		UpdateFunc: r.changed,
		DeleteFunc: func(o any) { r.changed(o, nil) },
	})
	o.Index.Feed.Subscribe(r.leaseChanged)
	return r, errors.Join(err, mgr.Add(manager.RunnableFunc(r.checkRole)))
}

// checkRole notices that Services may not be listed: nobody must wait for the list then. Roles may come a moment late.
func (r *Reconciler) checkRole(ctx context.Context) error {
	for ctx.Err() == nil && !r.listed() && !r.role.Missing() {
		if err := r.Live.List(ctx, &corev1.ServiceList{}, client.Limit(1)); r.role.Tried(err) {
			r.holders.Log.Warn("Services get no addresses: the role of config/services is missing", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(notSynced):
		}
	}
	return nil
}

// Unseen returns an error while it is not known which addresses Services have.
func (r *Reconciler) Unseen() error {
	if r == nil || r.listed() || r.role.Missing() {
		return nil
	}
	return errors.New("the list of Services has not come yet")
}

// Objects yields the addresses that Services of ours show, each once: a shared one is that of the first Service.
func (r *Reconciler) Objects() iter.Seq[recovery.Object] {
	return func(yield func(recovery.Object) bool) {
		var list corev1.ServiceList
		if r == nil || !r.listed() || r.Cache.List(context.Background(), &list) != nil {
			return
		}
		recovery.OfServices(list.Items)(yield)
	}
}

// known returns all Services, when a term begins.
func (r *Reconciler) known() (all []types.NamespacedName) {
	r.began.Store(0)
	var list corev1.ServiceList
	if !r.listed() || r.Cache.List(context.Background(), &list) != nil {
		return nil // the watch brings them
	}
	for i := range list.Items {
		all = append(all, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return all
}

// changed queues a Service that was created, changed or deleted, and, unless only its status changed, those that may
// share an address with it.
func (r *Reconciler) changed(before, now any) {
	if unknown, ok := before.(cache.DeletedFinalStateUnknown); ok {
		before = unknown.Obj
	}
	old, _ := before.(*corev1.Service)
	s, _ := now.(*corev1.Service)
	if old != nil && s != nil && equality.Semantic.DeepEqual(old.Spec, s.Spec) &&
		maps.Equal(withoutVIPs(old), withoutVIPs(s)) && s.DeletionTimestamp.Equal(old.DeletionTimestamp) {
		r.holders.Changed(client.ObjectKeyFromObject(s), conditions.WriteDelay) // nearly always by ourselves
		return
	}
	for _, o := range []*corev1.Service{old, s} {
		if o == nil {
			continue
		}
		r.holders.Changed(client.ObjectKeyFromObject(o), 0)
		if keyOf(o) != "" && r.holders.Terms.Leading() {
			r.lookAt(o.Namespace)
		}
	}
}

// withoutVIPs returns the annotations of a Service that are not our own.
func withoutVIPs(s *corev1.Service) map[string]string {
	if _, some := s.Annotations[kubeVIP]; !some {
		return s.Annotations
	}
	rest := maps.Clone(s.Annotations)
	delete(rest, kubeVIP)
	return rest
}

// lookAt queues the Services of a namespace that may share an address.
func (r *Reconciler) lookAt(namespace string) {
	all, _ := listOthers(context.Background(), r.Cache, types.NamespacedName{Namespace: namespace})
	for _, s := range all {
		if keyOf(s) != "" {
			r.holders.Changed(client.ObjectKeyFromObject(s), conditions.WriteDelay)
		}
	}
}

// leaseChanged queues the Services that show an address which a Service of their namespace holds no more.
func (r *Reconciler) leaseChanged(old, l lease.Lease) {
	o, ok := workload.ParseOwner(old.Owner)
	if !ok || o.Kind != workload.OwnerService || old.Owner == l.Owner || !r.holders.Terms.Leading() || !r.listed() {
		return
	}
	all, _ := listOthers(context.Background(), r.Cache, types.NamespacedName{Namespace: o.Namespace})
	for _, s := range usersOf(l.Addr, all) {
		r.holders.Changed(client.ObjectKeyFromObject(s), 0)
	}
}

// reconcile gives a Service its addresses, or takes back what one had that wants none.
func (r *Reconciler) reconcile(ctx context.Context, name types.NamespacedName) (time.Duration, error) {
	if !r.listed() {
		return notSynced, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxLook)
	defer cancel()
	s := &corev1.Service{}
	err := r.Cache.Get(ctx, name, s)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return 0, err
	case err == nil && r.isOurs(s):
		return r.give(ctx, name, s.DeepCopy())
	case (err != nil || !workload.IsMarked(s)) && len(r.holders.Held(name)) == 0:
		return 0, nil
	}
	return r.end(ctx, name)
}

// end gives back what a Service had that is gone, is being deleted, or wants no address of ours any more: first its
// status shows it no more, then the leases go, then its finalizer.
func (r *Reconciler) end(ctx context.Context, name types.NamespacedName) (time.Duration, error) {
	s := &corev1.Service{}
	err := r.Live.Get(ctx, name, s)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return 0, err
	case err != nil:
		s = nil
	case r.isOurs(s): // the cache has not seen it yet
		return notSynced, nil
	}
	if s != nil {
		if again := r.published.Wrote(name.String(), r.hide(ctx, s)); again > 0 {
			return again, nil
		}
	}
	if err := r.leaveAll(ctx, name); err != nil || s == nil {
		return 0, err
	}
	return r.published.Wrote(name.String(), r.unmark(ctx, s)), nil
}

// leaveAll gives back all that a Service holds. Meanwhile nothing is passed to it: what it gives back may be shared.
func (r *Reconciler) leaveAll(ctx context.Context, name types.NamespacedName) error {
	r.sharing.Lock()
	defer r.sharing.Unlock()
	others, err := listOthers(ctx, r.Live, name)
	if err != nil {
		return err
	}
	if err := r.leave(ctx, name, nil, others); err != nil {
		return err
	}
	return r.holders.GiveBack(ctx, name, "the Service no longer wants an address")
}

// leave gives back what a Service holds apart from some addresses. One that others have, too, is passed to the first of
// them. If the others are nil, they are not known for certain, and read first.
func (r *Reconciler) leave(
	ctx context.Context, name types.NamespacedName, keep []netip.Addr, others []*corev1.Service,
) error {
	left := func() []lease.Lease {
		return slices.DeleteFunc(r.holders.Held(name),
			func(l lease.Lease) bool { return slices.Contains(keep, l.Addr) })
	}
	if len(left()) == 0 {
		return nil
	}
	if others == nil {
		r.sharing.Lock()
		defer r.sharing.Unlock()
		var err error
		if others, err = listOthers(ctx, r.Live, name); err != nil {
			return err
		}
	}
	for _, l := range left() {
		if users := usersOf(l.Addr, others); len(users) > 0 {
			if err := r.holders.Pass(ctx, l, client.ObjectKeyFromObject(users[0])); err != nil {
				return err
			}
			r.lookAt(name.Namespace)
			keep = append(slices.Clone(keep), l.Addr)
		}
	}
	return r.holders.GiveBackOthers(ctx, name, keep)
}

package clusterapi

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/holding"
	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// notSynced is the time after which a claim is looked at again while its kinds were not listed.
const notSynced = 2 * time.Second

// Reconciler answers claims. A claim's lease is committed before its IPAddress is made, and the IPAddress before the
// claim names it; what a killed leader left undone is done by the next one.
type Reconciler struct {
	holders   holding.Holders
	pools     client.Reader
	claims    *holding.Watch
	addresses *holding.Watch
	clusters  *holding.Watch
	published holding.Publisher
	// untold has the names of claims that hold an address of which nobody was told: there is no IPAddress.
	untold sync.Map
	// unseen is the time since which the list of IPAddresses is waited for, in nanoseconds; 0 if it is not.
	unseen atomic.Int64
}

// Add makes the leader answer claims.
func Add(ctx context.Context, mgr ctrl.Manager, c dynamic.Interface, o holding.Config) (r *Reconciler, err error) {
	r = &Reconciler{
		holders: holding.Holders{Config: o, Kind: workload.OwnerClusterAPI}, pools: mgr.GetCache(),
		published: holding.Publisher{What: "IPAddresses and the status of IPAddressClaims", Log: o.Log},
	}
	r.holders.Reconcile, r.holders.Known = r.reconcile, r.known
	if err := r.holders.Setup(ctx, mgr, nil); err != nil {
		return nil, err
	}
	o.Terms.OnTerm(func(term context.Context) error {
		<-term.Done()
		r.untold.Clear()
		return nil
	})
	itself := func(u *unstructured.Unstructured) { r.holders.Changed(nameOf(u), 0) }
	// Nearly always it is our own write, and the claim's watch is yet to show what followed it.
	later := func(u *unstructured.Unstructured) { r.holders.Changed(nameOf(u), conditions.WriteDelay) }
	for _, w := range []struct {
		at              **holding.Watch
		group, resource string
		trim            func(*unstructured.Unstructured)
		changed         cache.ResourceEventHandler
	}{
		{&r.claims, group, "ipaddressclaims", nil, informers.Handler(itself, itself)},
		{&r.addresses, group, "ipaddresses", nil, informers.Handler(later, later)},
		{&r.clusters, clusterGroup, "clusters", trimCluster, informers.SpecHandler(r.clusterChanged, nil)},
	} {
		*w.at, err = holding.NewWatch(c, o.Log, w.group, w.resource, versions(), w.trim, w.changed)
		if err != nil {
			return nil, err
		}
		if err := mgr.Add(manager.RunnableFunc((*w.at).Start)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func nameOf(u *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
}

// known returns the claims that exist, and those of which there is an IPAddress.
func (r *Reconciler) known() (all []types.NamespacedName) {
	for _, w := range []*holding.Watch{r.claims, r.addresses} {
		for _, u := range w.All() {
			all = append(all, nameOf(u))
		}
	}
	return all
}

// reconcile answers one claim, or gives back what one had that goes or is gone.
func (r *Reconciler) reconcile(ctx context.Context, name types.NamespacedName) (time.Duration, error) {
	if !r.claims.Synced() || !r.addresses.Synced() || !r.clusters.Seen() {
		return notSynced, nil
	}
	c, a := read[claim](r.claims.Get(name)), read[address](r.addresses.Get(name))
	switch {
	case c != nil && !c.Spec.PoolRef.isOurs():
		return 0, nil
	case c == nil || c.DeletionTimestamp != nil:
		return r.leave(ctx, name, c, a)
	case staysAsIs(c.ObjectMeta) || a != nil && staysAsIs(a.ObjectMeta),
		r.ofStoppedCluster(c.ObjectMeta, c.Spec.ClusterName, false), r.ofPausedPool(ctx, name, c.Spec.PoolRef):
		return 0, nil
	}
	return r.answer(ctx, name, c, a)
}

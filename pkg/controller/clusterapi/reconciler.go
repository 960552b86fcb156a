package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/holding"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/recovery"
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
}

// Add makes the leader answer claims.
func Add(
	ctx context.Context, mgr ctrl.Manager, clients *holding.Clients, o holding.Config,
) (r *Reconciler, err error) {
	r = &Reconciler{
		holders: holding.Holders{Config: o, Kind: workload.OwnerClusterAPI}, pools: mgr.GetCache(),
		published: holding.Publisher{What: "IPAddresses and the status of IPAddressClaims", Log: o.Log},
	}
	r.holders.Reconcile, r.holders.Known = r.reconcile, r.known
	if err := r.holders.Setup(ctx, mgr, nil); err != nil {
		return nil, err
	}
	itself := func(u *unstructured.Unstructured) { r.holders.Changed(nameOf(u), 0) }
	// Nearly always it is our own write, and the claim's watch is yet to show what followed it.
	later := func(u *unstructured.Unstructured) { r.holders.Changed(nameOf(u), conditions.WriteDelay) }
	for _, w := range []struct {
		at              **holding.Watch
		group, resource string
		trim, changed   func(*unstructured.Unstructured)
	}{
		{&r.claims, group, "ipaddressclaims", nil, itself},
		{&r.addresses, group, "ipaddresses", nil, later},
		{&r.clusters, clusterGroup, "clusters", trimCluster, r.clusterChanged},
	} {
		if *w.at, err = holding.NewWatch(clients, w.group, w.resource, versions(), w.trim, w.changed); err != nil {
			return nil, err
		}
		if err := mgr.Add(manager.RunnableFunc((*w.at).Start)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Unseen returns an error while it is not known which IPAddresses there are. Without their kind, or a role for it,
// there are none.
func (r *Reconciler) Unseen() error {
	if r == nil || r.addresses.Seen() {
		return nil
	}
	return errors.New("the list of IPAddresses has not come yet")
}

// Objects yields the addresses that IPAddresses of our pools say they have.
func (r *Reconciler) Objects() iter.Seq[recovery.Object] {
	return func(yield func(recovery.Object) bool) {
		if r == nil {
			return
		}
		for _, u := range r.addresses.All() {
			a := read[address](u)
			if a == nil || !a.Spec.PoolRef.isOurs() || a.Spec.ClaimRef.Name != a.Name || !a.addr().IsValid() {
				continue
			}
			o := recovery.Object{Owner: r.holders.Owner(nameOf(u)), Namespace: a.Namespace, Addr: a.addr()}
			if !yield(o) {
				return
			}
		}
	}
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

// clusterChanged queues the claims of a Cluster, and the IPAddresses whose claims are gone.
func (r *Reconciler) clusterChanged(u *unstructured.Unstructured) {
	for _, w := range []*holding.Watch{r.claims, r.addresses} {
		for _, o := range w.All() {
			if o.GetNamespace() != u.GetNamespace() {
				continue
			}
			if c := read[claim](o); c != nil && (c.Spec.ClusterName == u.GetName() ||
				c.Labels[clusterLabel] == u.GetName()) {
				r.holders.Changed(nameOf(o), 0)
			}
		}
	}
}

// reconcile answers one claim, or gives back what one had that is gone.
func (r *Reconciler) reconcile(ctx context.Context, name types.NamespacedName) (time.Duration, error) {
	if !r.claims.Synced() || !r.addresses.Synced() {
		return notSynced, nil
	}
	c, a := read[claim](r.claims.Get(name)), read[address](r.addresses.Get(name))
	switch {
	case c == nil:
		return r.reconcileAbsent(ctx, name, a)
	case !c.Spec.PoolRef.isOurs():
		return 0, nil
	}
	stays := r.mayNotTouch(c.Namespace, clusterOf(c.Spec.ClusterName, c.Labels), c.DeletionTimestamp != nil)
	switch {
	case stays || isPaused(c.Annotations):
		return 0, nil
	case c.DeletionTimestamp != nil:
		return 0, r.release(ctx, name, a, "its claim is being deleted")
	}
	return r.answer(ctx, name, c, a)
}

// clusterOf returns the name of the Cluster that an object belongs to; empty for none.
func clusterOf(field string, labels map[string]string) string {
	if field != "" {
		return field
	}
	return labels[clusterLabel]
}

// mayNotTouch reports whether what belongs to a Cluster stays as it is at present: the Cluster is paused, or does not
// exist, so that nobody knows whether it is. What is going, goes without its Cluster, too. A change of the Cluster
// makes its claims be looked at again.
func (r *Reconciler) mayNotTouch(namespace, name string, going bool) bool {
	if name == "" {
		return false
	}
	c := read[cluster](r.clusters.Get(types.NamespacedName{Namespace: namespace, Name: name}))
	if c == nil {
		return !going || !r.clusters.Synced()
	}
	return c.Spec.Paused || isPaused(c.Annotations)
}

// answer gives a claim its address: first the lease, then the IPAddress, then the name of that in the claim's status.
func (r *Reconciler) answer(
	ctx context.Context, name types.NamespacedName, c *claim, a *address,
) (again time.Duration, err error) {
	if a == nil { // it may have been made a moment ago, or moved here with the claim
		u, err := r.addresses.Live(ctx, name)
		if err != nil {
			return 0, err
		}
		a = read[address](u)
	}
	if a != nil && a.DeletionTimestamp != nil && !a.of(c.UID) { // that of an earlier claim of the name
		return 0, r.release(ctx, name, a, "its claim is gone")
	}
	request := allocator.Request{Pool: c.Spec.PoolRef.Name}
	if a != nil {
		if !a.addr().IsValid() || a.Spec.PoolRef != c.Spec.PoolRef || a.Spec.ClaimRef.Name != c.Name {
			return r.refuse(ctx, c, &ipam.Refusal{Reason: ipam.ReasonClaimConflict, Message: fmt.Sprintf(
				"IPAddress %s exists already, with address %s of pool %s for claim %s; it stays as it is", name,
				a.Spec.Address, a.Spec.PoolRef.Name, a.Spec.ClaimRef.Name)})
		}
		request.Addrs = []netip.Addr{a.addr()}
		// Nobody was told of any other address: the IPAddress is the answer.
		if err := r.holders.GiveBackOthers(ctx, name, request.Addrs); err != nil {
			return 0, err
		}
	}
	held := r.holders.Held(name)
	if a == nil || len(held) != 1 {
		taken, refusal, again, err := r.holders.Take(ctx, name, request)
		switch {
		case err != nil:
			return 0, err
		case refusal != nil:
			next, err := r.refuse(ctx, c, refusal)
			if next == 0 {
				next = again
			}
			return next, err
		}
		held = []lease.Lease{taken[0].Lease}
	}
	if err := r.keepAddress(ctx, c, a, held[0]); err != nil {
		return r.published.Wrote(name.String(), err), nil
	}
	return r.publish(ctx, c, true, reasonReady, fmt.Sprintf("it has address %s/%d of pool %s", held[0].Addr,
		held[0].Bits, c.Spec.PoolRef.Name))
}

// reconcileAbsent gives back what a claim had that is gone. The finalizer of the IPAddress says that nobody has seen to
// it: clusterctl takes it off when it moves a claim to another cluster, where the machine goes on with the address.
// Then the lease stays, and doctor tells of it.
func (r *Reconciler) reconcileAbsent(
	ctx context.Context, name types.NamespacedName, a *address,
) (time.Duration, error) {
	switch {
	case a == nil && len(r.holders.Held(name)) > 0:
		r.holders.Log.Warn("an IPAddressClaim and its IPAddress are gone although nobody gave the address back: was "+
			"it moved to another cluster? The lease stays", "claim", name.String())
		return 0, nil
	case a == nil:
		return 0, r.holders.GiveBack(ctx, name, "its claim is gone")
	case !a.Spec.PoolRef.isOurs() || r.mayNotTouch(a.Namespace, clusterOf("", a.Labels), true):
		return 0, nil
	}
	if now, err := r.claims.Live(ctx, name); err != nil || now != nil {
		return notSynced, err
	}
	return 0, r.release(ctx, name, a, "its claim is gone")
}

package clusterapi

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
)

// leave gives back what a claim had that is being deleted, or is gone: c is nil then. The finalizer of the IPAddress
// says that nobody has seen to it. If it is gone together with the claim, somebody took the finalizer off, as
// clusterctl does when it has moved both to another cluster, where the machine goes on with the address: the lease
// stays, and doctor tells of it.
func (r *Reconciler) leave(
	ctx context.Context, name types.NamespacedName, c *claim, a *address,
) (again time.Duration, err error) {
	holds := len(r.holders.Held(name)) > 0
	_, untold := r.untold.Load(name)
	if a == nil && !holds && !untold {
		return 0, nil
	}
	if a, err = r.liveAddress(ctx, name); err != nil {
		return 0, err
	}
	switch {
	case c != nil && (staysAsIs(c.ObjectMeta) || r.ofStoppedCluster(c.ObjectMeta, c.Spec.ClusterName, true) ||
		r.ofPausedPool(ctx, name, c.Spec.PoolRef)),
		a != nil && (!a.Spec.PoolRef.isOurs() || staysAsIs(a.ObjectMeta) ||
			r.ofStoppedCluster(a.ObjectMeta, "", true) || r.ofPausedPool(ctx, name, a.Spec.PoolRef)),
		a != nil && c == nil && !holds && a.DeletionTimestamp == nil: // its claim never had it, and may be yet to come
		return 0, nil
	case c == nil && a == nil && !untold:
		r.holders.Log.Warn("an IPAddressClaim and its IPAddress are gone although nobody gave the address back: was "+
			"it moved to another cluster? The lease stays", "claim", name.String())
		return 0, nil
	case c == nil:
		if now, err := r.claims.Live(ctx, name); err != nil || now != nil {
			return notSynced, err
		}
	}
	return r.release(ctx, name, a, "its claim is deleted")
}

// release gives the address of a claim back between the deletion of its IPAddress and the end of that: before, nobody
// may read the address there as one that is held, and after it, nobody would look.
func (r *Reconciler) release(
	ctx context.Context, name types.NamespacedName, a *address, why string,
) (again time.Duration, err error) {
	at, err := r.addresses.At(ctx, name.Namespace)
	if err != nil {
		return 0, err
	}
	if a != nil && a.DeletionTimestamp == nil {
		is := metav1.Preconditions{UID: &a.UID, ResourceVersion: &a.ResourceVersion}
		switch err := at.Delete(ctx, name.Name, metav1.DeleteOptions{Preconditions: &is}); {
		case apierrors.IsConflict(err): // somebody has changed it just now
			return conditions.WriteDelay, nil
		case err != nil && !apierrors.IsNotFound(err):
			return 0, err
		}
	}
	if err := r.noteUntold(ctx, name); err != nil {
		return 0, err
	}
	if err := r.holders.GiveBack(ctx, name, why); err != nil {
		return 0, err
	}
	r.untold.Delete(name)
	if a == nil || !slices.Contains(a.Finalizers, protect) {
		return 0, nil
	}
	left := slices.DeleteFunc(slices.Clone(a.Finalizers), func(f string) bool { return f == protect })
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": a.UID, "finalizers": left}})
	if err != nil {
		return 0, err
	}
	_, err = at.Patch(ctx, name.Name, types.MergePatchType, text, metav1.PatchOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // it is gone, or another one
		err = nil
	}
	return 0, err
}

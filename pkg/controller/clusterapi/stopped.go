package clusterapi

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/holding"
)

// staysAsIs reports whether nobody may change an object at present.
func staysAsIs(o metav1.ObjectMeta) bool {
	_, paused := o.Annotations[pausedAnnotation]
	_, moved := o.Annotations[movedAnnotation]
	return paused || moved
}

// clusterOf returns the name of the Cluster that an object belongs to; empty for none.
func clusterOf(field string, labels map[string]string) string {
	if field != "" {
		return field
	}
	return labels[clusterLabel]
}

// ofStoppedCluster reports whether an object belongs to a Cluster whose objects stay as they are at present: it is
// paused, or does not exist, so that nobody knows whether it is. What is going, goes without its Cluster, too. A change
// of the Cluster makes its claims be looked at again.
func (r *Reconciler) ofStoppedCluster(o metav1.ObjectMeta, field string, going bool) bool {
	name := clusterOf(field, o.Labels)
	if name == "" {
		return false
	}
	c := read[cluster](r.clusters.Get(types.NamespacedName{Namespace: o.Namespace, Name: name}))
	if c == nil {
		return !going
	}
	return c.Spec.Paused || staysAsIs(c.ObjectMeta)
}

// ofPausedPool reports whether the claims of a pool stay as they are at present. They are looked at again when the pool
// changes.
func (r *Reconciler) ofPausedPool(ctx context.Context, claim types.NamespacedName, ref poolRef) bool {
	var pool v1.BCSNetPool
	err := r.pools.Get(ctx, types.NamespacedName{Name: ref.Name}, &pool)
	if err != nil || !staysAsIs(pool.ObjectMeta) {
		return false
	}
	r.holders.Wait(claim)
	return true
}

// clusterChanged queues the claims of a Cluster, and the IPAddresses whose claims are gone.
func (r *Reconciler) clusterChanged(u *unstructured.Unstructured) {
	for _, w := range []*holding.Watch{r.claims, r.addresses} {
		for _, o := range w.All() {
			field, _, _ := unstructured.NestedString(o.Object, "spec", "clusterName")
			if o.GetNamespace() == u.GetNamespace() && clusterOf(field, o.GetLabels()) == u.GetName() {
				r.holders.Changed(nameOf(o), 0)
			}
		}
	}
}

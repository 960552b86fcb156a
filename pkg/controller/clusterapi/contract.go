package clusterapi

import (
	"context"
	"encoding/json"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/holding"
)

// Names of the contract.
const (
	group        = "ipam.cluster.x-k8s.io"
	clusterGroup = "cluster.x-k8s.io"
	claimKind    = "IPAddressClaim"
	addressKind  = "IPAddress"
	poolKind     = "BCSNetPool"
	// clusterLabel names the Cluster of an object. pausedAnnotation stops controllers from reconciling an object.
	// movedAnnotation marks an object that clusterctl deletes because it has moved the object to another cluster.
	clusterLabel     = "cluster.x-k8s.io/cluster-name"
	pausedAnnotation = "cluster.x-k8s.io/paused"
	movedAnnotation  = "clusterctl.cluster.x-k8s.io/delete-for-move"
	// protect is the finalizer of an IPAddress: it goes when its address is given back.
	protect = "ipam.cluster.x-k8s.io/protect-address"
)

// Condition of a claim, with its reasons.
const (
	conditionReady   = "Ready"
	reasonReady      = "Ready"
	reasonFailed     = "AllocationFailed"
	reasonPoolFull   = "PoolExhausted"
	reasonPoolWaits  = "PoolNotReady"
	oldVersion       = "v1beta1"
	severityWarning  = "Warning"
	maxConditionNote = 1024
)

// versions returns those of the contract, the preferred one first.
func versions() []string { return []string{"v1beta2", oldVersion} }

// poolRef names the pool of a claim or address.
type poolRef struct {
	APIGroup string `json:"apiGroup"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
}

func (p poolRef) isOurs() bool { return p.APIGroup == v1.GroupVersion.Group && p.Kind == poolKind }

// claim has what is read of an IPAddressClaim.
type claim struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ClusterName string  `json:"clusterName"`
		PoolRef     poolRef `json:"poolRef"`
	} `json:"spec"`
	Status struct {
		AddressRef struct {
			Name string `json:"name"`
		} `json:"addressRef"`
		// Conditions have other fields in v1beta1: those of others are written back as they are.
		Conditions []map[string]any `json:"conditions"`
	} `json:"status"`
}

// address has what is read of an IPAddress.
type address struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ClaimRef struct {
			Name string `json:"name"`
		} `json:"claimRef"`
		PoolRef poolRef `json:"poolRef"`
		Address string  `json:"address"`
	} `json:"spec"`
}

// addr returns the address; invalid if it cannot be read.
func (a *address) addr() netip.Addr {
	addr, _ := netip.ParseAddr(a.Spec.Address)
	return addr.Unmap()
}

// of reports whether an IPAddress was made for a claim, by the UID of its controlling owner.
func (a *address) of(uid types.UID) bool {
	owner := metav1.GetControllerOfNoCopy(a)
	return owner != nil && owner.UID == uid
}

// cluster has what is read of a Cluster.
type cluster struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Paused bool `json:"paused"`
	} `json:"spec"`
}

// trimCluster leaves only what a cluster has in an object.
func trimCluster(u *unstructured.Unstructured) {
	paused, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "paused")
	trimmed := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"paused": paused}}}
	trimmed.SetGroupVersionKind(u.GroupVersionKind())
	trimmed.SetNamespace(u.GetNamespace())
	trimmed.SetName(u.GetName())
	trimmed.SetUID(u.GetUID())
	trimmed.SetResourceVersion(u.GetResourceVersion())
	trimmed.SetGeneration(u.GetGeneration())
	if text, ok := u.GetAnnotations()[pausedAnnotation]; ok {
		trimmed.SetAnnotations(map[string]string{pausedAnnotation: text})
	}
	u.Object = trimmed.Object
}

// read reads an object; nil for none, or one that cannot be read: the CRD is not that of the contract then.
func read[T any](u *unstructured.Unstructured) *T {
	if u == nil {
		return nil
	}
	text, err := json.Marshal(u.Object)
	o := new(T)
	if err != nil || json.Unmarshal(text, o) != nil {
		return nil
	}
	return o
}

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

package clusterapi

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// keepAddress makes the IPAddress of a claim; a is the one that exists, nil for none. Of an existing one it adds what
// the contract wants and somebody left out; it never changes the address.
func (r *Reconciler) keepAddress(ctx context.Context, c *claim, a *address, l lease.Lease) error {
	at, err := r.addresses.At(ctx, c.Namespace)
	if err != nil {
		return err
	}
	served, err := r.addresses.Version(ctx)
	if err != nil {
		return err
	}
	var pool v1.BCSNetPool
	if err := r.pools.Get(ctx, types.NamespacedName{Name: c.Spec.PoolRef.Name}, &pool); err != nil {
		return errors.New("the pool: " + err.Error()) // a NotFound would be taken for that of the IPAddress
	}
	owners := owners(c, &pool, served)
	if a == nil {
		_, err := at.Create(ctx, newAddress(c, owners, l, served), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // by somebody else, just now: the next look takes it as it is
			return apierrors.NewConflict(schema.GroupResource{Group: group, Resource: "ipaddresses"}, c.Name, err)
		}
		return err
	}
	patch := map[string]any{}
	if !slices.Contains(a.Finalizers, protect) && a.DeletionTimestamp == nil {
		patch["finalizers"] = append(slices.Clone(a.Finalizers), protect)
	}
	if all := withOwners(a.OwnerReferences, owners); !slices.EqualFunc(all, a.OwnerReferences, sameOwner) {
		patch["ownerReferences"] = all
	}
	if name := clusterOf(c.Spec.ClusterName, c.Labels); name != "" && a.Labels[clusterLabel] != name {
		patch["labels"] = map[string]any{clusterLabel: name}
	}
	if len(patch) == 0 {
		return nil
	}
	patch["resourceVersion"] = a.ResourceVersion
	text, err := json.Marshal(map[string]any{"metadata": patch})
	if err != nil {
		return err
	}
	_, err = at.Patch(ctx, a.Name, types.MergePatchType, text, metav1.PatchOptions{})
	return err
}

// owners returns the owners that the contract wants of an IPAddress: the claim, which controls it, and the pool.
func owners(c *claim, pool *v1.BCSNetPool, served schema.GroupVersion) []metav1.OwnerReference {
	return []metav1.OwnerReference{
		{
			APIVersion: served.String(), Kind: claimKind, Name: c.Name, UID: c.UID,
			Controller: new(true), BlockOwnerDeletion: new(true),
		},
		{
			APIVersion: v1.GroupVersion.String(), Kind: poolKind, Name: pool.Name, UID: pool.UID,
			Controller: new(false), BlockOwnerDeletion: new(true),
		},
	}
}

// withOwners returns the owners of an object with some others, in place of those of the same kinds and names.
func withOwners(all, wanted []metav1.OwnerReference) []metav1.OwnerReference {
	all = slices.Clone(all)
	for _, w := range wanted {
		i := slices.IndexFunc(all, func(o metav1.OwnerReference) bool {
			return o.Kind == w.Kind && o.Name == w.Name && groupOf(o) == groupOf(w)
		})
		if i < 0 {
			all = append(all, w)
			continue
		}
		w.APIVersion = all[i].APIVersion // another version is the same owner
		all[i] = w
	}
	return all
}

func groupOf(o metav1.OwnerReference) string {
	gv, _ := schema.ParseGroupVersion(o.APIVersion)
	return gv.Group
}

func sameOwner(a, b metav1.OwnerReference) bool {
	is := func(p *bool) bool { return p != nil && *p }
	return a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID && groupOf(a) == groupOf(b) &&
		is(a.Controller) == is(b.Controller) && is(a.BlockOwnerDeletion) == is(b.BlockOwnerDeletion)
}

func newAddress(
	c *claim, owners []metav1.OwnerReference, l lease.Lease, served schema.GroupVersion,
) *unstructured.Unstructured {
	ref := c.Spec.PoolRef
	spec := map[string]any{
		"claimRef": map[string]any{"name": c.Name},
		"poolRef":  map[string]any{"apiGroup": ref.APIGroup, "kind": ref.Kind, "name": ref.Name},
		"address":  l.Addr.String(), "prefix": int64(l.Bits),
	}
	if g := l.UsedGateway(); g.IsValid() {
		spec["gateway"] = g.String()
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(served.WithKind(addressKind))
	u.SetNamespace(c.Namespace)
	u.SetName(c.Name)
	u.SetFinalizers([]string{protect})
	u.SetOwnerReferences(owners)
	if name := clusterOf(c.Spec.ClusterName, c.Labels); name != "" {
		u.SetLabels(map[string]string{clusterLabel: name})
	}
	return u
}

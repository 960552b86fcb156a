package claim

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// IsFor reports whether somebody created a claim for a workload: its owner is the workload, the controller did not
// create it from annotations, and it is not being deleted.
func IsFor(o *v1.BCSNetIPClaim, w workload.Workload) bool {
	owner := o.Spec.Owner
	if owner == nil || owner.Kind != w.Kind || owner.Name != w.Name || o.Namespace != w.Namespace ||
		o.Labels[Managed] == "true" || o.DeletionTimestamp != nil {
		return false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == w.Group
}

// ownerName is the index of claims by the names of their owners.
const ownerName = "spec.owner.name"

// Index indexes claims by their owners, in a cache that is not started yet. It returns a function that finds the claims
// that somebody created for a workload, and returns their names in the workload's namespace, sorted.
func Index(
	ctx context.Context, claims cache.Cache,
) (func(context.Context, workload.Workload) ([]string, error), error) {
	err := claims.IndexField(ctx, &v1.BCSNetIPClaim{}, ownerName, func(o client.Object) []string {
		if c, ok := o.(*v1.BCSNetIPClaim); ok && c.Spec.Owner != nil {
			return []string{c.Spec.Owner.Name}
		}
		return nil
	})
	return func(ctx context.Context, w workload.Workload) (names []string, err error) {
		var all v1.BCSNetIPClaimList
		if err := claims.List(ctx, &all, client.InNamespace(w.Namespace), client.MatchingFields{ownerName: w.Name},
			client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		for i := range all.Items {
			if IsFor(&all.Items[i], w) {
				names = append(names, all.Items[i].Name)
			}
		}
		slices.Sort(names)
		return names, nil
	}, err
}

// ServesShared returns a function that reports whether a claim of the controller's namespace exists and serves the pods
// of a namespace; see workload.Resolver. A claim that is being deleted serves nobody.
func ServesShared(claims client.Reader, system string) func(ctx context.Context, name, namespace string) (bool, error) {
	return func(ctx context.Context, name, namespace string) (bool, error) {
		var o v1.BCSNetIPClaim // it is only read
		err := claims.Get(ctx, types.NamespacedName{Namespace: system, Name: name}, &o, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err):
			return false, nil
		case err != nil:
			return false, err
		}
		return ServesElsewhere(&o, namespace), nil
	}
}

// ServesElsewhere reports whether a claim serves the pods of a namespace by its spec.namespaces.
func ServesElsewhere(o *v1.BCSNetIPClaim, namespace string) bool {
	return o.DeletionTimestamp == nil &&
		(slices.Contains(o.Spec.Namespaces, AllNamespaces) || slices.Contains(o.Spec.Namespaces, namespace))
}

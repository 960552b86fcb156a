package claim

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
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

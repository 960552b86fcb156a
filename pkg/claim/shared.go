package claim

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

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

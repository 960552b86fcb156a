package configmap

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// Patch writes the differences of a pool, unless somebody else has changed it meanwhile.
func Patch(ctx context.Context, c client.Client, old, next *v1.BCSNetPool) (changed bool, err error) {
	if equality.Semantic.DeepEqual(old, next) {
		return false, nil
	}
	if err := c.Patch(ctx, next, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("changing pool %s: %w", old.Name, err)
	}
	return true, nil
}

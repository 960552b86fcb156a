package claim

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
)

// Preallocator takes addresses before a pod asks; the Stocker of package allocator is one.
type Preallocator interface {
	Preallocate(ctx context.Context, r allocator.Preallocation) (allocator.Stock, error)
}

// Preallocate takes the addresses that a claim preallocates, and returns what it has then. Others may do the same
// concurrently. atMost limits how many addresses of a family the claim has in the end; with MaxPreallocated only the
// claim's own size limits it. The reader is uncached: a claim that is gone at the end, is being deleted, or no longer
// preallocates gets nothing. system is the controller's namespace.
//
// If there are too few addresses, the claim gets the available ones (Stock.Missing and Stock.Why), and the leader takes
// the rest later. The error is a *ipam.Refusal or comes from the API server; the stock may then count too few
// addresses.
func Preallocate(
	ctx context.Context, by Preallocator, live client.Reader, o *v1.BCSNetIPClaim, system string, atMost int,
) (allocator.Stock, error) {
	c, err := FromObject(o)
	if err != nil {
		return allocator.Stock{}, fmt.Errorf("claim %s cannot be used: %w", c.Name, err)
	}
	return by.Preallocate(ctx, allocator.Preallocation{
		Claim: c.Name, Namespaces: c.drawsFor(system), Pools: c.Pools, Addresses: c.Addresses,
		Size: c.preallocates(), AtMost: atMost,
		Void: func(ctx context.Context) (bool, error) {
			var now v1.BCSNetIPClaim
			err := live.Get(ctx, client.ObjectKeyFromObject(o), &now)
			return err != nil || now.UID != o.UID || now.DeletionTimestamp != nil || !now.Spec.Preallocate,
				client.IgnoreNotFound(err)
		},
	})
}

// preallocates returns the number of addresses of a family that the claim preallocates. Without a size, these are all
// that it names.
func (c Claim) preallocates() int {
	switch {
	case !c.Preallocate || c.Deleting:
		return 0
	case c.Size < 0:
		return MaxPreallocated
	}
	return c.Size
}

// drawsFor returns the namespaces from whose pools the claim draws, the namespace with most of its pods first. An empty
// name means the unbound pools. A claim that preallocates draws only from the pools of its own namespace, unless it is
// in the controller's namespace: users who may write claims in one namespace must not take addresses of other
// namespaces' pools.
func (c Claim) drawsFor(system string) []string {
	switch {
	case c.Preallocate && c.namespace != system:
		return []string{c.namespace}
	case slices.Contains(c.namespaces, AllNamespaces):
		return []string{"", c.namespace}
	}
	return append([]string{c.namespace}, c.namespaces...)
}

package claim

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
)

// Preallocate takes the addresses that a claim is to have before its pods ask, and returns what it has then. Others may
// do the same at the same time. atMost bounds how many addresses of a family the claim has in the end; MaxPreallocated
// is no bound beside the claim's own size. The reader is uncached: a claim that is gone by the end, is being deleted,
// or is no longer to have addresses beforehand gets nothing.
//
// Where there are too few addresses the claim gets those that there are (Stock.Missing and Stock.Why), and the leader
// takes the rest when it can. An error is a *ipam.Refusal or one of the API server; the stock may count too few
// addresses then.
func Preallocate(
	ctx context.Context, a *allocator.Allocator, live client.Reader, o *v1.BCSNetIPClaim, atMost int,
) (allocator.Stock, error) {
	c, err := FromObject(o)
	if err != nil {
		return allocator.Stock{}, fmt.Errorf("claim %s cannot be used: %w", c.Name, err)
	}
	return a.Preallocate(ctx, allocator.Preallocation{
		Claim: c.Name, Namespaces: c.drawsFor(), Pools: c.Pools, Addresses: c.Addresses,
		Size: c.preallocates(), AtMost: atMost,
		Void: func(ctx context.Context) (bool, error) {
			var now v1.BCSNetIPClaim
			err := live.Get(ctx, client.ObjectKeyFromObject(o), &now)
			return err != nil || now.UID != o.UID || now.DeletionTimestamp != nil || !now.Spec.Preallocate,
				client.IgnoreNotFound(err)
		},
	})
}

// preallocates returns how many addresses of a family the claim is to have before pods ask. Without a size, these are
// all that it names.
func (c Claim) preallocates() int {
	switch {
	case !c.Preallocate || c.Deleting:
		return 0
	case c.Size < 0:
		return MaxPreallocated
	}
	return c.Size
}

// drawsFor returns the namespaces whose pools the claim draws from, those first that most of its pods are in. An empty
// one stands for the pools that are bound to no namespace.
func (c Claim) drawsFor() []string {
	if slices.Contains(c.namespaces, AllNamespaces) {
		return []string{"", c.namespace}
	}
	return append([]string{c.namespace}, c.namespaces...)
}

package rest

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Service answers requests. The caller bounds how many ask for lists at once. Its errors are *ipam.Refusal where the
// client is to get the reason; StatusOf returns the HTTP status of one.
type Service struct {
	Index  *index.Index
	Leases *store.Client
	// Cached reads pods and claims from the watch caches, Live claims from the API server; Claims writes them.
	Cached, Live client.Reader
	Claims       client.Writer
	Owners       *workload.Owners
	// Gone decides whether nobody has an address any more that a pod has by its lease. live has it read the pod from
	// the API server; without, the cache counts as if it were the API server's answer.
	Gone func(ctx context.Context, l lease.Lease, live bool) (gone.Decision, error)
	// Policies finds the policy of a pod whose claim is not made yet.
	Policies claim.Policies
	// Namespace of the controller, where the claims of shared pools are.
	Namespace string
	// Preallocate has a claim take the addresses that it is to have before pods ask. The stock that it returns counts
	// also with an error.
	Preallocate func(ctx context.Context, c *v1.BCSNetIPClaim) (allocator.Stock, error)
}

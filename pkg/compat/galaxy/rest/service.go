package rest

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Service answers; how many ask for lists at once is the caller's to bound. Its errors are *ipam.Refusal where somebody is to be told why; Status says with which HTTP status.
type Service struct {
	Index  *ipam.Index
	Leases *store.Client
	// Cached reads pods and claims from the watch caches, Live claims from the API server; Claims writes them.
	Cached, Live client.Reader
	Claims       client.Writer
	Owners       *workload.Owners
	// Gone decides whether nobody has an address any more that a pod has by its lease. live has it ask the API server for
	// the pod, else the cache counts as if it had said so.
	Gone func(ctx context.Context, l lease.Lease, live bool) (gone.Decision, error)
	// Policies finds the policy of a pod whose claim is not made yet.
	Policies claim.Policies
	// Namespace of the controller, where the claims of shared pools are.
	Namespace string
	// Preallocate has a claim take the addresses that it is to have before pods ask. What it has then counts also with
	// an error.
	Preallocate func(ctx context.Context, c *v1.BCSNetIPClaim) (allocator.Stock, error)
}

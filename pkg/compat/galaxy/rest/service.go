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

// Service answers requests. The caller limits the number of concurrent list requests. Errors with a reason for the
// client are *ipam.Refusal; StatusOf returns their HTTP status.
type Service struct {
	Index  *index.Index
	Leases *store.Client
	// Cached reads pods and claims from the watch caches; Live reads claims from the API server; Claims writes claims.
	Cached, Live client.Reader
	Claims       client.Writer
	Owners       *workload.Owners
	// Gone decides whether the pod in a lease no longer has the address. If live is true, it reads the pod from the API
	// server; otherwise it trusts the cache.
	Gone func(ctx context.Context, l lease.Lease, live bool) (gone.Decision, error)
	// Policies finds the policy of a pod whose claim does not exist yet.
	Policies claim.Policies
	// Namespace is the controller's namespace, which contains the claims of shared pools.
	Namespace string
	// Preallocate makes a claim take its addresses before pods ask. The returned stock is also valid with an error.
	Preallocate func(ctx context.Context, c *v1.BCSNetIPClaim) (allocator.Stock, error)
}

package claim

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// scope is one reconciliation of an existing claim: its findings, and the data for its status.
type scope struct {
	object *v1.BCSNetIPClaim
	claim  claim.Claim
	// problem is the reason why its spec cannot be used; nil if it can.
	problem error
	// leases are the claim's leases at the beginning of the reconciliation.
	leases []lease.Lease
	// view is the data to publish.
	view statusView
	// unknown is the reason why the needs of the claim's workload are not known; untaken is the reason why addresses
	// could not be preallocated. Either is shown, and then causes another reconciliation.
	unknown, untaken error
}

// phase carries out one task for a claim, and returns when to reconcile it again. After an error, no other phase
// follows, and nothing is published.
type phase func(ctx context.Context, s *scope) (reconcile.Result, error)

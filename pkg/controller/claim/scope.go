package claim

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// scope is one reconciliation of a claim that exists: what was found, and what its status is to show.
type scope struct {
	object *v1.BCSNetIPClaim
	claim  claim.Claim
	// problem is why its spec cannot be used; nil when it can.
	problem error
	// leases are what the claim had when the reconciliation began.
	leases []lease.Lease
	// view is what is to be published.
	view statusView
	// unknown is why it is not known what the claim's workload needs; untaken is why addresses could not be
	// preallocated. Either is shown, and then has the claim reconciled again.
	unknown, untaken error
}

// phase does one thing that is due for a claim, and returns when to reconcile it again. After an error no other phase
// follows, and nothing is published.
type phase func(ctx context.Context, s *scope) (reconcile.Result, error)

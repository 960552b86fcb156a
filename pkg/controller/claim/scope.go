package claim

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// scope is one look at a claim that is there: what was found, and what its status is to say.
type scope struct {
	object *v1.BCSNetIPClaim
	claim  claim.Claim
	// problem is why its spec cannot be used; nil when it can.
	problem error
	// leases are what the claim had when the look began.
	leases []ipam.Lease
	// view is what is to be published.
	view statusView
	// unknown is why it is not known what the claim's workload needs, untaken why addresses could not be taken ahead.
	// Either is shown, and then has the claim looked at again.
	unknown, untaken error
}

// phase does one thing that is due for a claim, and returns when to look again. After an error no other phase follows,
// and nothing is published.
type phase func(ctx context.Context, s *scope) (reconcile.Result, error)

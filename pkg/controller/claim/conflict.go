package claim

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// conflictEvery is the interval in which problems are searched again for a claim that has a size, a pool or addresses,
// or an owner that somebody named: pools change, and others take its addresses.
const conflictEvery = time.Minute

// findProblems runs the phase that finds the reasons why the claim cannot get what its spec requests.
func (r *Reconciler) findProblems(ctx context.Context, s *scope) (result reconcile.Result, err error) {
	c, owner := s.claim, r.owner(ctx, s.claim)
	names := c.Addresses
	if c.Deleting {
		names = nil
	}
	others := claim.Others{
		Rivals: r.States.rivals(c.Name, names), DuplicateOwners: r.duplicateOwners(ctx, c),
		Above: owner.above, System: r.Namespace, SharedForAll: r.SharedForAll,
	}
	s.view.ownerless, s.view.problems = owner.missing, claim.Problems(c, r.Index, others)
	if f := r.States.noteNeed(c.Name, s.unknown); f != nil {
		s.view.problems = append(s.view.problems,
			claim.Problem{Reason: string(ipam.ReasonWorkloadUnknown), Message: fmt.Sprintf(
				"what %s needs is not known, and nothing is released on its account: %s", c.Workload, f.message)})
	}
	if c.Addresses != nil || c.Size >= 0 || len(c.Pools) > 0 || c.Workload.Kind != "" && !c.Managed {
		result.RequeueAfter = conflictEvery
	}
	return result, nil
}

// duplicateOwners returns the claims that somebody created for the same workload as another claim that somebody
// created.
func (r *Reconciler) duplicateOwners(ctx context.Context, c claim.Claim) (names []string) {
	if c.Workload.Kind == "" || c.Managed {
		return nil
	}
	for _, name := range r.States.claimsOf(c.Workload) {
		var o v1.BCSNetIPClaim
		if name != c.Name && r.Client.Get(ctx, nameOf(name), &o) == nil && claim.IsFor(&o, c.Workload) {
			names = append(names, name)
		}
	}
	return names
}

// ownerView is the latest information about the owner of a claim that somebody created.
type ownerView struct {
	// above is the workload to which the owner belongs. missing reports whether no owner of that name exists; it may
	// still be created.
	above   workload.Workload
	missing bool
}

// owner reads the owner of a claim. If that fails, it returns the previous result.
func (r *Reconciler) owner(ctx context.Context, c claim.Claim) ownerView {
	if c.Workload.Kind == "" || c.Managed {
		return ownerView{}
	}
	missing, err := r.Owners.Missing(ctx, c.Workload)
	above, belongs := workload.Workload{}, false
	if err == nil && !missing {
		above, belongs, err = r.Owners.Above(ctx, c.Workload)
	}
	if err != nil {
		r.Log.Debug("the owner of a claim cannot be looked at", "claim", c.Name, "owner", c.Workload.String(), "error",
			err)
		return r.States.of(c.Name).owner
	}
	view := ownerView{missing: missing}
	if belongs {
		view.above = above
	}
	r.States.change(c.Name, func(of *state) { of.owner = view })
	return view
}

func conflict(view statusView) metav1.Condition {
	if len(view.problems) == 0 {
		return conditions.New(v1.ConditionConflict, false, v1.ReasonNoConflict, "nothing is in the way of the claim")
	}
	var texts []string
	for _, p := range view.problems {
		texts = append(texts, p.Message)
	}
	return conditions.New(v1.ConditionConflict, true, view.problems[0].Reason, "%s",
		conditions.Clip(strings.Join(texts, "; "), conditions.MaxNote))
}

package controller

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// conflictEvery is how often a claim of a size or of certain addresses is looked at for what is in its way: pools
// change, and others take its addresses.
const conflictEvery = time.Minute

// rivals takes note of which addresses a claim names, nil for any, and returns the other claims that name some of
// them. Where that has changed, those that it meets are looked at, too.
func (r *claimReconciler) rivals(name string, now *netipx.IPSet) map[string]*netipx.IPSet {
	r.mu.Lock()
	before := r.named[name]
	if delete(r.named, name); now != nil {
		r.named[name] = now
	}
	changed := (before == nil) != (now == nil) || before != nil && !before.Equal(now)
	rivals, met := map[string]*netipx.IPSet{}, []string{}
	for other, set := range r.named {
		if other == name {
			continue
		}
		if now != nil && now.Overlaps(set) {
			rivals[other] = set
		}
		if changed && (now != nil && now.Overlaps(set) || before != nil && before.Overlaps(set)) {
			met = append(met, other)
		}
	}
	r.mu.Unlock()
	for _, other := range met {
		r.enqueue(other, claimDelay)
	}
	return rivals
}

// learn takes note of what all claims name, at the beginning of a term.
func (r *claimReconciler) learn(all []v1.BCSNetIPClaim) {
	named := map[string]*netipx.IPSet{}
	for i := range all {
		if c, err := claim.FromObject(&all[i]); err == nil && c.Addresses != nil && !c.Deleting {
			named[c.Name] = c.Addresses
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.named = named
}

// inTheWay is what keeps a claim from having what it says, and when to look again: next, or earlier.
func (r *claimReconciler) inTheWay(ctx context.Context, c claim.Claim, above workload.Workload, next time.Duration) ([]claim.Problem, time.Duration) {
	names := c.Addresses
	if c.Deleting {
		names = nil
	}
	others := claim.Others{Rivals: r.rivals(c.Name, names), DuplicateOwners: r.duplicateOwners(ctx, c), Above: above, System: r.system}
	if (c.Addresses != nil || c.Size >= 0 || c.Pool != "" || c.Workload.Kind != "" && !c.Managed) && (next == 0 || conflictEvery < next) {
		next = conflictEvery
	}
	return claim.Problems(c, r.index, others), next
}

// duplicateOwners returns the claims that somebody made for the workload of another one that somebody made.
func (r *claimReconciler) duplicateOwners(ctx context.Context, c claim.Claim) (names []string) {
	if c.Workload.Kind == "" || c.Managed {
		return nil
	}
	r.mu.Lock()
	others := slices.Sorted(maps.Keys(r.of[c.Workload]))
	r.mu.Unlock()
	for _, name := range others {
		var o v1.BCSNetIPClaim
		if name != c.Name && r.client.Get(ctx, nameOf(name), &o) == nil && claim.IsFor(&o, c.Workload) {
			names = append(names, name)
		}
	}
	return names
}

// ownerView is how the owner of a claim that somebody made stands in the way of its use.
type ownerView struct {
	// above is the workload that it belongs to; missing: there is none of the name, which may be still to come.
	above   workload.Workload
	missing bool
}

// owner looks at the owner of a claim. While that cannot be read it is as it was seen last.
func (r *claimReconciler) owner(ctx context.Context, c claim.Claim) ownerView {
	if c.Workload.Kind == "" || c.Managed {
		return ownerView{}
	}
	r.mu.Lock()
	view := r.known[c.Name]
	r.mu.Unlock()
	missing, err := r.owners.Missing(ctx, c.Workload)
	above, belongs := workload.Workload{}, false
	if err == nil && !missing {
		above, belongs, err = r.owners.Above(ctx, c.Workload)
	}
	if err != nil {
		r.log.Debug("the owner of a claim cannot be looked at", "claim", c.Name, "owner", c.Workload.String(), "error", err)
		return view
	}
	view = ownerView{missing: missing}
	if belongs {
		view.above = above
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[c.Name] = view
	return view
}

// conflict says whether something is in the way of a claim.
func conflict(view claimView) metav1.Condition {
	condition := metav1.Condition{Type: v1.ConditionConflict, Status: metav1.ConditionFalse, Reason: v1.ReasonNoConflict, Message: "nothing is in the way of the claim"}
	var texts []string
	for _, p := range view.problems {
		texts = append(texts, p.Message)
	}
	if len(texts) > 0 {
		condition.Status, condition.Reason = metav1.ConditionTrue, view.problems[0].Reason
		condition.Message = conditions.Clip(strings.Join(texts, "; "), conditions.MaxNote)
	}
	return condition
}

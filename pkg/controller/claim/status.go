package claim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Bounds of the lists in a status.
const (
	maxClaimAddresses = 1024
	maxClaimShown     = 8
)

// statusView is the published data of a claim, apart from its addresses.
type statusView struct {
	// problem is the reason why its spec cannot be used; empty if it can.
	problem string
	// taking reports whether the claim is still preallocating. stock describes its addresses so far.
	taking bool
	stock  allocator.Stock
	// failure is the reason why preallocation failed repeatedly; nil if it did not.
	failure *failure
	// problems are the obstacles for the claim; ownerless reports whether its workload does not exist.
	problems  []claim.Problem
	ownerless bool
}

// publish writes the status of a claim if it has changed and it is the claim's turn. again is the time after which to
// reconcile the claim if a write is still due; 0 otherwise.
func (r *Reconciler) publish(ctx context.Context, look *scope) (again time.Duration, err error) {
	o, c, view, leases, next := look.object, look.claim, look.view, r.Index.Leases.ByClaim(look.claim.Name),
		look.object.DeepCopy()
	if look.problem != nil {
		view.problem = look.problem.Error()
	}
	s := &next.Status
	s.ObservedGeneration, s.Used, s.Held = o.Generation, 0, int64(len(leases))
	s.Addresses = nil
	var shown []string
	families := map[ipaddr.Family]int{}
	for _, l := range leases {
		if l.State == lease.Active {
			s.Used++
		}
		families[ipaddr.FamilyOf(l.Addr)]++
		if len(s.Addresses) < maxClaimAddresses {
			s.Addresses = append(s.Addresses, l.Addr.String())
		}
		if len(shown) < maxClaimShown {
			shown = append(shown, fmt.Sprintf("%s/%d", l.Addr, l.Bits))
		}
	}
	if more := len(leases) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	s.Usage, s.IPPool = fmt.Sprintf("%d/%d", s.Used, s.Held), strings.Join(shown, ",")
	all := []metav1.Condition{
		readyCondition(c, s, view), overLimit(c, max(families[ipaddr.IPv4], families[ipaddr.IPv6])), conflict(view),
	}
	if c.Preallocate {
		all = append(all, preallocated(c, view))
	} else {
		meta.RemoveStatusCondition(&s.Conditions, v1.ConditionPreallocated)
	}
	for _, condition := range all {
		condition.ObservedGeneration = o.Generation
		meta.SetStatusCondition(&s.Conditions, condition)
	}
	if wait := r.Budget.Ask(budgetName(c.Name), conditions.UrgencyOfClaim(c.Managed, &o.Status, s)); wait > 0 ||
		equality.Semantic.DeepEqual(o.Status, next.Status) {
		return wait, nil
	}
	base := o.DeepCopy()
	if base.Status.Usage == "" { // a patch omits unchanged fields: write the zeros once
		base.Status.Used, base.Status.Held = -1, -1
	}
	switch err := r.Client.Status().Patch(ctx, next,
		client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return conditions.WriteDelay, nil // a newer version is coming
	case err != nil:
		return 0, err
	}
	conditions.EmitTurned(r.Events, next, o.Status.Conditions, next.Status.Conditions)
	return 0, nil
}

// budgetName returns the name of a claim's status in the budget.
func budgetName(name string) string { return "claim/" + name }

func readyCondition(c claim.Claim, s *v1.BCSNetIPClaimStatus, view statusView) metav1.Condition {
	not := func(reason, format string, args ...any) metav1.Condition {
		return conditions.New(v1.ConditionReady, false, reason, format, args...)
	}
	switch {
	case view.problem != "":
		return not(v1.ReasonInvalidSpec, "%s", view.problem)
	case c.Deleting && c.Managed:
		return not(v1.ReasonClaimReleasing,
			"the claim is deleted when its kept addresses are released, and created again for the pods that have "+
				"its addresses")
	case c.Deleting && s.Held == 0:
		return not(v1.ReasonClaimReleasing,
			"the claim goes when requests that began before its deletion have ended, within seconds")
	case c.Deleting:
		return not(v1.ReasonClaimReleasing, "the claim goes when pods have given up %s",
			humanize.Plural(int(s.Used), "address"))
	}
	text := fmt.Sprintf("%s in use, %d kept", humanize.Plural(int(s.Used), "address"), s.Held-s.Used)
	if view.ownerless {
		text += "; there is no " + c.Workload.String()
	}
	return conditions.New(v1.ConditionReady, true, v1.ReasonBound, "%s", text)
}

// overLimit returns the condition OverLimit: whether a claim has more addresses of a family than allowed, including
// those for a rolling update.
func overLimit(c claim.Claim, held int) metav1.Condition {
	may := c.Size + c.Surge
	if c.Size < 0 || held <= may {
		return conditions.New(v1.ConditionOverLimit, false, v1.ReasonWithinLimit,
			"the claim has no more addresses than it may")
	}
	how := "addresses that pods have are released when the pods end"
	if c.KeepsAll() {
		how = "what a shared pool has is given up by hand"
	}
	return conditions.New(v1.ConditionOverLimit, true, v1.ReasonTooMany,
		"the claim has %d addresses of a family and may have %d: %s", held, may, how)
}

package resource

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// OwnerText names the workload of a claim, or else describes the pods that use it.
func OwnerText(c *v1.BCSNetIPClaim) string {
	switch o := c.Spec.Owner; {
	case o != nil:
		return o.Kind + " " + o.Name
	case c.Spec.SharedName != "":
		return "pods that name the shared pool " + c.Spec.SharedName
	default:
		return "pods that name the claim"
	}
}

// UntilIPAMClaimGone describes when the addresses of an IPAMClaim's claim are released.
const UntilIPAMClaimGone = string(v1.ReleaseImmutable) + ": the address is kept until the IPAMClaim goes"

// IPAMClaimOf returns the name of the IPAMClaim that owns a claim; may be empty.
func IPAMClaimOf(c *v1.BCSNetIPClaim) string {
	o := c.Spec.Owner
	if o == nil {
		return ""
	}
	if gv, err := schema.ParseGroupVersion(o.APIVersion); err == nil &&
		(workload.Workload{Group: gv.Group, Kind: o.Kind}).IsIPAMClaim() {
		return o.Name
	}
	return ""
}

// ClaimPolicyText describes when the addresses of a claim are released.
func ClaimPolicyText(c *v1.BCSNetIPClaim) string {
	if IPAMClaimOf(c) != "" && cmp.Or(c.Spec.ReleasePolicy, v1.ReleaseImmutable) == v1.ReleaseImmutable {
		return UntilIPAMClaimGone
	}
	return PolicyText(c.Spec.ReleasePolicy, c.Spec.Keep, c.Spec.Owner != nil)
}

// PolicyText describes when the addresses of a claim are released. owned means that the claim has a workload.
func PolicyText(policy v1.ReleasePolicy, keep *metav1.Duration, owned bool) string {
	switch policy := cmp.Or(policy, v1.ReleaseImmutable); policy {
	case v1.ReleaseWithPod:
		return string(policy) + ": an address returns to its pool when its pod ends"
	case v1.ReleaseNever:
		return string(policy) + ": addresses are kept until they are released by hand"
	case v1.ReleaseTimed:
		text := string(policy) + ": an address is kept for a while after its pod ended"
		if keep != nil {
			text = string(policy) + ": an address is kept for " + explain.FormatSpan(keep.Duration) +
				" after its pod ended"
		}
		return text
	default:
		if !owned {
			return string(policy) +
				": addresses are kept until they are released by hand, because no workload says how many are needed"
		}
		return string(policy) +
			": addresses are kept while the workload needs them; they are released when it scales down or ends"
	}
}

// SizeText describes the maximum number of addresses of a claim.
func SizeText(c *v1.BCSNetIPClaim) string {
	ahead := ""
	if c.Spec.Preallocate {
		ahead = ", taken before pods ask"
	}
	if c.Spec.Replicas == nil {
		if ahead != "" {
			return "all of its addresses" + ahead
		}
		return "as many addresses as its pods need"
	}
	text := humanize.Plural(int64(*c.Spec.Replicas), "address")
	if c.Spec.Surge > 0 {
		text += fmt.Sprintf(", and %d more temporarily (surge)", c.Spec.Surge)
	}
	return text + ahead
}

// ClaimState returns a word for the state of a claim, and whether it needs attention.
func ClaimState(c *v1.BCSNetIPClaim) (word string, attention bool) {
	ready := meta.FindStatusCondition(c.Status.Conditions, v1.ConditionReady)
	switch {
	case c.DeletionTimestamp != nil:
		return v1.ReasonClaimReleasing, true
	case ready == nil:
		return StateUnseen, false
	case c.Status.ObservedGeneration != c.Generation:
		return StateUpdating, false
	case ready.Status != metav1.ConditionTrue:
		return ready.Reason, true
	case meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionOverLimit):
		return v1.ConditionOverLimit, true
	case meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionConflict):
		return v1.ConditionConflict, true
	case meta.IsStatusConditionFalse(c.Status.Conditions, v1.ConditionPreallocated):
		if meta.FindStatusCondition(c.Status.Conditions, v1.ConditionPreallocated).Reason == v1.ReasonTaking {
			return v1.ReasonTaking, false
		}
		return stateShort, true
	}
	return v1.ConditionReady, false
}

// ManagedClaim returns the refusal to change a claim that was made from annotations.
func ManagedClaim(c Claim) *app.Failure {
	return app.Refuse(app.ReasonClaimManaged,
		"claim %s was made from annotations, and the controller keeps its spec as they say", c.FullName()).
		WithHint("change the annotations of %s; which ones: bcsnetctl explain POD", OwnerText(c.BCSNetIPClaim))
}

// PodText names the present or last pod of an address.
func PodText(l lease.Lease) string {
	if l.PodName == "" {
		return ""
	}
	return l.Namespace + "/" + l.PodName
}

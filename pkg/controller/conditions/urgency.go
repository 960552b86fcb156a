package conditions

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// UrgencyOfPool returns the urgency of writing a pool's status.
func UrgencyOfPool(before, now *v1.BCSNetPoolStatus) Urgency {
	switch {
	case equality.Semantic.DeepEqual(before, now):
		return Unchanged
	case before.UpdateTime == "", before.Status != now.Status, before.ObservedGeneration != now.ObservedGeneration:
		return Answer
	case !slices.Equal(before.Carved, now.Carved), (before.Available == 0) != (now.Available == 0),
		turned(before.Conditions, now.Conditions):
		return Edge
	}
	return Numbers
}

// UrgencyOfClaim returns the urgency of writing a claim's status. Nobody waits for the status of a claim from
// annotations; there may be as many as pods.
func UrgencyOfClaim(managed bool, before, now *v1.BCSNetIPClaimStatus) Urgency {
	switch {
	case equality.Semantic.DeepEqual(before, now):
		return Unchanged
	case !managed && (before.Usage == "" || before.ObservedGeneration != now.ObservedGeneration):
		return Answer
	case before.Usage != "" && turned(before.Conditions, now.Conditions):
		return Edge
	}
	return Numbers
}

// turned reports whether a condition was added or removed, or has another status or reason. A changed message alone
// does not count.
func turned(before, now []metav1.Condition) bool {
	return len(before) != len(now) || slices.ContainsFunc(now, func(c metav1.Condition) bool {
		was := meta.FindStatusCondition(before, c.Type)
		return was == nil || was.Status != c.Status || was.Reason != c.Reason
	})
}

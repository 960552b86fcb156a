package controller

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
)

// urgencyOfPool is how urgent it is to write a pool's status.
func urgencyOfPool(before, now *v1.BCSNetPoolStatus) urgencyOf {
	switch {
	case equality.Semantic.DeepEqual(before, now):
		return unchanged
	case before.UpdateTime == "", before.Status != now.Status, before.ObservedGeneration != now.ObservedGeneration:
		return answer
	case (before.Available == 0) != (now.Available == 0), turned(before.Conditions, now.Conditions):
		return edge
	}
	return numbers
}

// urgencyOfClaim is how urgent it is to write a claim's status. Nobody waits for the status of one that annotations made:
// there are as many as pods, at times.
func urgencyOfClaim(c claim.Claim, before, now *v1.BCSNetIPClaimStatus) urgencyOf {
	switch {
	case equality.Semantic.DeepEqual(before, now):
		return unchanged
	case !c.Managed && (before.Usage == "" || before.ObservedGeneration != now.ObservedGeneration):
		return answer
	case before.Usage != "" && turned(before.Conditions, now.Conditions):
		return edge
	}
	return numbers
}

// turned reports whether a condition came, went, or has another status or reason. Its text may be another all the same.
func turned(before, now []metav1.Condition) bool {
	return len(before) != len(now) || slices.ContainsFunc(now, func(c metav1.Condition) bool {
		was := meta.FindStatusCondition(before, c.Type)
		return was == nil || was.Status != c.Status || was.Reason != c.Reason
	})
}

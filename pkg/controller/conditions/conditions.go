// Package conditions has the common parts of the statuses of pools and claims: how a condition is made, which events
// its turns make, and how often and how urgently a status is written. The reconcilers decide about the content.
package conditions

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// The longest messages that the API server accepts, in bytes.
const (
	// MaxMessage is the limit for a condition.
	MaxMessage = 32768
	// MaxNote is the limit for an event.
	MaxNote = 1024
)

// New returns a condition of a kind.
func New(kind string, status bool, reason, format string, args ...any) metav1.Condition {
	c := metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: Clip(fmt.Sprintf(format, args...),
			MaxMessage),
	}
	if status {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// EmitTurned creates an event about an object for every condition whose status changed, or that ended its progress in
// another state than intended.
func EmitTurned(recorder events.EventRecorder, o runtime.Object, before, now []metav1.Condition) {
	bad := func(c *metav1.Condition) bool { return c != nil && c.Status != healthy(c.Type) }
	wanted := func(c *metav1.Condition) bool {
		return slices.Contains([]string{v1.ReasonCordoned, v1.ReasonTaking, v1.ReasonTooMany, v1.ReasonClaimReleasing},
			c.Reason)
	}
	for i := range now {
		c, was := &now[i], meta.FindStatusCondition(before, now[i].Type)
		kind := corev1.EventTypeNormal
		switch {
		case bad(c) && c.Type == v1.ConditionQuotaNearlyReached: // events about quotas name each namespace
			continue
		case bad(c) && !wanted(c) && (!bad(was) || was.Reason == v1.ReasonTaking):
			kind = corev1.EventTypeWarning
		// In progress, and finished.
		case bad(c) == bad(was), c.Reason == v1.ReasonTaking, !bad(c) && was.Reason == v1.ReasonTaking:
			continue
		}
		recorder.Eventf(o, nil, kind, c.Reason, c.Type, "%s", Clip(c.Message, MaxNote))
	}
}

// Clip shortens a text to a number of bytes. Invisible characters are escaped: see humanize.Visible.
func Clip(text string, limit int) string {
	text = humanize.Visible(text)
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}

// healthy returns the status of a condition if all is well.
func healthy(condition string) metav1.ConditionStatus {
	if condition == v1.ConditionReady || condition == v1.ConditionPreallocated {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

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

package app

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// MaxNamed bounds the names that a sentence lists.
const MaxNamed = humanize.MaxNamed

// Map returns what fn makes of each element, in their order.
func Map[T, R any](all []T, fn func(T) R) []R {
	out := make([]R, 0, len(all))
	for _, one := range all {
		out = append(out, fn(one))
	}
	return out
}

// Those returns a noun with its names: "host a", "2 hosts (a, b)".
func Those(noun string, names []string) string {
	if len(names) == 1 {
		return noun + " " + names[0]
	}
	return humanize.Plural(len(names), noun) + " (" + humanize.List(names) + ")"
}

// Age formats the time since t as kubectl does.
func (s *App) Age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, s.Now().Sub(t)))
}

// Count formats a count of a pool's status, which saturates at 2^63-1.
func Count(n int64) string {
	if n == math.MaxInt64 {
		return humanize.Saturated
	}
	return strconv.FormatInt(n, 10)
}

// UnlessZero formats a number; zero is empty.
func UnlessZero(n int32) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

// SortedOnce returns the names sorted and without duplicates.
func SortedOnce(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// Saturated limits a count to 2^63-1, the maximum in objects.
func Saturated(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// Change returns the user's entry for the history of addresses.
func (s *App) Change(ctx context.Context, verb, reason string) lease.Change {
	return lease.Change{Verb: verb, By: s.Author(ctx), Reason: reason}
}

// AddReason adds the flag --reason, whose value is stored in the history of addresses.
func AddReason(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why, for the history of the address: `TEXT` of at most 80 bytes")
	Complete(cmd, "reason")
}

// CheckText refuses a text that is longer than limit bytes or would garble a terminal.
func CheckText(flag, text string, limit int) error {
	switch {
	case len(text) > limit:
		return Usagef("%s is %d bytes long, and %d is the most", flag, len(text), limit).WithHint("shorten it")
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }):
		return Usagef("%s has characters that cannot be printed", flag).WithHint("write it in one line of text")
	}
	return nil
}

// Author returns the user's name at the API server, for the history of addresses; empty if the API server does not
// return it. Only the first call sends a request.
func (s *App) Author(ctx context.Context) string {
	if s.user != nil {
		return *s.user
	}
	s.user = new(string)
	c, err := s.Dynamic()
	if err != nil {
		return ""
	}
	review := &unstructured.Unstructured{}
	review.SetGroupVersionKind(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"))
	review, err = c.Resource(authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews")).
		Create(ctx, review, metav1.CreateOptions{})
	if err == nil {
		*s.user, _, _ = unstructured.NestedString(review.Object, "status", "userInfo", "username")
	}
	return *s.user
}

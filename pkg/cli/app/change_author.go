package app

import (
	"context"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

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
		return Usagef("%s is %d bytes long: at most %d are allowed", flag, len(text), limit).WithHint("shorten it")
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

package cli

import (
	"context"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// change is what goes into the history of addresses that the user changes.
func (s *session) change(ctx context.Context, verb, reason string) ipam.Change {
	return ipam.Change{Verb: verb, By: s.who(ctx), Reason: reason}
}

// addReason adds --reason, which goes into the history of addresses.
func addReason(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why, for the history of the address: `TEXT` of at most 80 bytes")
	complete(cmd, "reason")
}

// checkText refuses a text that has no room in an object, or would garble a terminal.
func checkText(flag, text string, limit int) error {
	switch {
	case len(text) > limit:
		return usagef("%s is %d bytes long, and %d is the most", flag, len(text), limit).withHint("shorten it")
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }):
		return usagef("%s has characters that cannot be printed", flag).withHint("write it in one line of text")
	}
	return nil
}

// who is the name that the API server knows the user by, for the history of addresses; empty when it
// does not tell. It asks once.
func (s *session) who(ctx context.Context) string {
	if s.user != nil {
		return *s.user
	}
	s.user = new(string)
	c, err := s.dynamic()
	if err != nil {
		return ""
	}
	review := &unstructured.Unstructured{}
	review.SetGroupVersionKind(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"))
	review, err = c.Resource(authenticationv1.SchemeGroupVersion.WithResource("selfsubjectreviews")).Create(ctx, review, metav1.CreateOptions{})
	if err == nil {
		*s.user, _, _ = unstructured.NestedString(review.Object, "status", "userInfo", "username")
	}
	return *s.user
}

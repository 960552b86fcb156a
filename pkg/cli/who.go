package cli

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// who is the name that the API server knows the user by, for the history of addresses; empty when it
// does not tell. It asks once.
func (s *session) who(ctx context.Context) string {
	if s.user != nil {
		return *s.user
	}
	s.user = new(string)
	cfg, err := s.connect()
	if err != nil {
		return ""
	}
	c, err := authenticationclient.NewForConfig(cfg)
	if err != nil {
		return ""
	}
	review, err := c.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err == nil {
		*s.user = review.Status.UserInfo.Username
	}
	return *s.user
}

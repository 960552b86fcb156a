package resource

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// Rights are verbs on objects.
type Rights []authorizationv1.ResourceAttributes

// Missing asks the API server, and returns the rights that the user lacks.
func (r Rights) Missing(ctx context.Context, s *app.App) (missing Rights, err error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	c, err := typedauthorizationv1.NewForConfig(cfg)
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	allowed := make([]bool, len(r))
	var group errgroup.Group
	group.SetLimit(AtOnce)
	for i := range r {
		group.Go(func() error {
			answer, err := c.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &r[i]},
			}, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("ask what you may: %w", err)
			}
			allowed[i] = answer.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, Explain(s, err)
	}
	for i, right := range r {
		if !allowed[i] {
			missing = append(missing, right)
		}
	}
	return missing, nil
}

package ui

import (
	"context"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

const (
	// roleOfRights is the ClusterRole with all rights for these pages.
	roleOfRights = "bcsnet-viewer"
	// rightsKnown is the time for which an answer about a right is valid. mostRights bounds the answers of a visitor.
	rightsKnown, mostRights = 10 * time.Second, 256
)

// right is a verb on a kind of object that a page needs.
type right struct {
	verb string
	kind schema.GroupVersionResource
	// in is the path value with the namespace to which the right is limited; empty for the whole cluster.
	in string
}

func ofPools() right           { return right{"list", resource.Of(v1.PoolResource), ""} }
func ofAddresses() right       { return right{"list", resource.Of(v1.IPResource), ""} }
func ofHistory() right         { return right{"list", resource.Of(v1.HistoryResource), ""} }
func ofClaims(in string) right { return right{"list", resource.Of(v1.ClaimResource), in} }
func ofClaim(in string) right  { return right{"get", resource.Of(v1.ClaimResource), in} }
func ofEvents(in string) right { return right{"list", resource.EventResource(), in} }
func ofNamespace(in string) right {
	return right{"get", corev1.SchemeGroupVersion.WithResource("namespaces"), in}
}

// lack is a right that the visitor lacks.
type lack struct{ Verb, Kind, Namespace, Role string }

// refusal returns the error for a page whose right is missing.
func (l lack) refusal() *app.Failure {
	where, binding := "", "clusterrolebinding NAME"
	if l.Namespace != "" {
		where, binding = " in the namespace "+l.Namespace, "rolebinding NAME --namespace="+l.Namespace
	}
	return app.Refuse(ipam.ReasonForbidden, "you may not %s %s%s, which this page shows", l.Verb, l.Kind, where).
		WithHint("the ClusterRole %s gives that right; an administrator gives it to you: kubectl create %s "+
			"--clusterrole=%s --user=YOU", l.Role, binding, l.Role)
}

// rights caches the rights of a visitor.
type rights struct{ known *cache.LRUExpireCache }

func newRights() rights { return rights{cache.NewLRUExpireCache(mostRights)} }

// lacking asks the API server about rights concurrently, and returns the missing ones, as a list in order and as a set.
func (r rights) lacking(ctx context.Context, q *request, all []right) (out []lack, missing map[right]bool) {
	allowed := make([]bool, len(all))
	var asking sync.WaitGroup
	for i, one := range all {
		asking.Go(func() { allowed[i] = r.may(ctx, q, one) })
	}
	asking.Wait()
	missing = map[right]bool{}
	for i, one := range all {
		if !allowed[i] {
			missing[one] = true
			out = append(out, lack{one.verb, one.kind.Resource, q.PathValue(one.in), roleOfRights})
		}
	}
	return out, missing
}

// may asks the API server about one right. If it does not answer, may returns true: reading will show.
func (r rights) may(ctx context.Context, q *request, one right) bool {
	ask := authorizationv1.ResourceAttributes{
		Verb: one.verb, Group: one.kind.Group, Resource: one.kind.Resource, Namespace: q.PathValue(one.in),
	}
	if one.in != "" && one.kind.Resource == "namespaces" {
		ask.Name = ask.Namespace
	}
	key := fmt.Sprint(ask.Verb, " ", ask.Group, "/", ask.Resource, " ", ask.Namespace)
	if known, ok := r.known.Get(key); ok {
		return known.(bool)
	}
	c, err := typedauthorizationv1.NewForConfig(q.Config)
	if err != nil {
		return true
	}
	review, err := c.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &ask},
	}, metav1.CreateOptions{})
	if err != nil {
		return true
	}
	r.known.Add(key, review.Status.Allowed, rightsKnown)
	return review.Status.Allowed
}

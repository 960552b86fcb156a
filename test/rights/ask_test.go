package rights

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// place reads a resource as the table of roles writes it: resource[/subresource][.group][@namespace][=name].
func place(text string) *authorizationv1.ResourceAttributes {
	a := &authorizationv1.ResourceAttributes{}
	text, a.Name, _ = strings.Cut(text, "=")
	text, a.Namespace, _ = strings.Cut(text, "@")
	text, a.Group, _ = strings.Cut(text, ".")
	a.Resource, a.Subresource, _ = strings.Cut(text, "/")
	if a.Group == "" && slices.Contains([]string{
		v1.PoolResource, v1.IPResource, v1.ClaimResource, "allocations", "hostreleases", "conflicts", "gc", "placements",
	}, a.Resource) {
		a.Group = v1.GroupVersion.Group
	}
	return a
}

// given reports whether a table gives a verb on a place: there, or wherever that is part of.
func given(may map[string]string, at, verb string) bool {
	asked := place(at)
	for where, verbs := range may {
		p := place(where)
		if p.Group == asked.Group && p.Resource == asked.Resource && p.Subresource == asked.Subresource &&
			(p.Namespace == "" || p.Namespace == asked.Namespace) && (p.Name == "" || p.Name == asked.Name) &&
			slices.Contains(strings.Fields(verbs), verb) {
			return true
		}
	}
	return false
}

// asked returns what the API server says that a user may.
func asked(t *testing.T, user string, places []string) map[string]string {
	t.Helper()
	groups := []string{"system:authenticated"}
	if strings.HasPrefix(user, "system:serviceaccount:") {
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+strings.Split(user, ":")[2])
	}
	var mu sync.Mutex
	may := map[string]map[string]bool{}
	var group errgroup.Group
	group.SetLimit(16)
	for _, at := range places {
		for _, verb := range verbs() {
			group.Go(func() error {
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: user, Groups: groups, ResourceAttributes: place(at),
				}}
				review.Spec.ResourceAttributes.Verb = verb
				if err := admin.Create(t.Context(), review); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if may[at] == nil {
					may[at] = map[string]bool{}
				}
				may[at][verb] = review.Status.Allowed
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, at := range places {
		for _, verb := range verbs() {
			if may[at][verb] {
				got[at] += " " + verb
			}
		}
	}
	return got
}

package rights

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
		v1.PoolResource, v1.IPResource, v1.ClaimResource, v1.HistoryResource, "allocations", "hostreleases", "conflicts", "gc", "placements",
	}, a.Resource) {
		a.Group = v1.GroupVersion.Group
	}
	return a
}

// bound returns what the rules of a user's roles give: verbs by place.
func bound(t *testing.T, user string) map[string]map[string]bool {
	t.Helper()
	var everywhere rbacv1.ClusterRoleBindingList
	var inNamespaces rbacv1.RoleBindingList
	if err := errors.Join(admin.List(t.Context(), &everywhere), admin.List(t.Context(), &inNamespaces)); err != nil {
		t.Fatal(err)
	}
	is := func(s rbacv1.Subject) bool {
		return s.Name == user || s.Kind == rbacv1.ServiceAccountKind && serviceAccount(s.Namespace, s.Name) == user
	}
	may := map[string]map[string]bool{}
	for _, b := range everywhere.Items {
		if slices.ContainsFunc(b.Subjects, is) {
			var role rbacv1.ClusterRole
			if err := admin.Get(t.Context(), client.ObjectKey{Name: b.RoleRef.Name}, &role); err != nil {
				t.Fatal(err)
			}
			give(may, role.Rules, "")
		}
	}
	for _, b := range inNamespaces.Items {
		if slices.ContainsFunc(b.Subjects, is) {
			var role rbacv1.Role
			if err := admin.Get(t.Context(), client.ObjectKey{Namespace: b.Namespace, Name: b.RoleRef.Name}, &role); err != nil {
				t.Fatal(err)
			}
			give(may, role.Rules, "@"+b.Namespace)
		}
	}
	if len(may) == 0 {
		t.Errorf("nothing is bound to %s", user)
	}
	return may
}

// give enters rules, each place of which ends by in.
func give(may map[string]map[string]bool, rules []rbacv1.PolicyRule, in string) {
	for _, r := range rules {
		for _, at := range placesOf(r, in) {
			if may[at] == nil {
				may[at] = map[string]bool{}
			}
			for _, verb := range r.Verbs {
				may[at][verb] = true
			}
		}
	}
}

// placesOf returns the places of a rule, as place reads them.
func placesOf(r rbacv1.PolicyRule, in string) (all []string) {
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			at := resource
			if place(resource).Group != group {
				at += "." + group
			}
			at += in
			if len(r.ResourceNames) == 0 {
				all = append(all, at)
			}
			for _, name := range r.ResourceNames {
				all = append(all, at+"="+name)
			}
		}
	}
	return all
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

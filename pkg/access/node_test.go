package access

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// Which node a user is on.
func TestNodeOf(t *testing.T) {
	t.Parallel()
	extra := func(name, value string) map[string]authenticationv1.ExtraValue {
		return map[string]authenticationv1.ExtraValue{name: {value}}
	}
	for name, c := range map[string]struct {
		who   User
		want  string
		bound bool
	}{
		"nobody":                   {User{}, "", false},
		"a token of a pod":         {User{Username: "system:serviceaccount:a:b", Extra: extra(nodeName, "n1")}, "n1", true},
		"a token of no pod":        {User{Username: "system:serviceaccount:a:b"}, "", false},
		"a pod of no node":         {User{Username: "system:serviceaccount:a:b", Extra: extra(podName, "p1")}, "", true},
		"an empty node":            {User{Username: "system:serviceaccount:a:b", Extra: extra(nodeName, "")}, "", true},
		"another extra":            {User{Username: "alice", Extra: extra("example.org/node-name", "n1")}, "", false},
		"a kubelet":                {User{Username: "system:node:n1", Groups: []string{"system:nodes"}}, "n1", true},
		"the name of one alone":    {User{Username: "system:node:n1"}, "", false},
		"the group of one alone":   {User{Username: "alice", Groups: []string{"system:nodes"}}, "", true},
		"a kubelet without a name": {User{Username: "system:node:", Groups: []string{"system:nodes"}}, "", true},
	} {
		if got, bound := NodeOf(c.who); got != c.want || bound != c.bound {
			t.Errorf("%s: %q %t, want %q %t", name, got, bound, c.want, c.bound)
		}
	}
}

// Two questions that differ in anything that RBAC looks at are remembered apart.
func TestRightKey(t *testing.T) {
	t.Parallel()
	who := func(name, uid string, groups ...string) User { return User{Username: name, UID: uid, Groups: groups} }
	withExtra := func(name string, values ...string) User {
		return User{Username: "a", UID: "1", Extra: map[string]authenticationv1.ExtraValue{name: values}}
	}
	q := Question{"create", "allocations", "a"}
	seen := map[[32]byte]string{}
	for name, key := range map[string][32]byte{
		"one":                         rightKey(who("a", "1", "g"), q),
		"another user":                rightKey(who("b", "1", "g"), q),
		"another UID":                 rightKey(who("a", "2", "g"), q),
		"another group":               rightKey(who("a", "1", "h"), q),
		"no group":                    rightKey(who("a", "1"), q),
		"two groups":                  rightKey(who("a", "1", "g", "h"), q),
		"another verb":                rightKey(who("a", "1", "g"), Question{"delete", "allocations", "a"}),
		"another kind":                rightKey(who("a", "1", "g"), Question{"create", "gc", "a"}),
		"a namespace with a line end": rightKey(who("a", "1"), Question{"create", "allocations", "a\ng"}),
		"two extras of one value":     rightKey(withExtra("x", "y", "z"), q),
		"one extra of two values":     rightKey(withExtra("x", "y,z"), q),
		"all namespaces":              rightKey(who("a", "1", "g"), Question{"create", "allocations", ""}),
		"an extra": rightKey(User{
			Username: "a", UID: "1", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"x": {"y"}},
		}, q),
	} {
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s are one", name, other)
		}
		seen[key] = name
	}
	if one, again := rightKey(who("a", "1", "g"), q), rightKey(who("a", "1", "g"), q); one != again {
		t.Error("the same question is two")
	}
}

// FuzzBearer: whatever a header is, a token of it is one word of some length, and the header names the scheme.
func FuzzBearer(f *testing.F) {
	for _, shown := range []string{"Bearer a.b.c", "bearer  a", "Basic YTpi", "Bearer a b", "Bearer\ta", "Bearer \u00a0a", ""} {
		f.Add(shown)
	}
	f.Fuzz(func(t *testing.T, shown string) {
		token, ok := bearer(shown)
		if ok && (token == "" || len(token) > maxToken || len(strings.Fields(token)) != 1 ||
			!strings.EqualFold(shown[:len("Bearer ")], "Bearer ")) {
			t.Errorf("%q has the token %q", shown, token)
		}
	})
}

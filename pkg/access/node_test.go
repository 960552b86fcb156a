package access

import (
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
		who  User
		want string
	}{
		"nobody":                   {User{}, ""},
		"a token of a pod":         {User{Username: "system:serviceaccount:a:b", Extra: extra(nodeName, "n1")}, "n1"},
		"a token of no pod":        {User{Username: "system:serviceaccount:a:b"}, ""},
		"another extra":            {User{Username: "alice", Extra: extra("example.org/node-name", "n1")}, ""},
		"a kubelet":                {User{Username: "system:node:n1", Groups: []string{"system:nodes"}}, "n1"},
		"the name of one alone":    {User{Username: "system:node:n1"}, ""},
		"the group of one alone":   {User{Username: "alice", Groups: []string{"system:nodes"}}, ""},
		"a kubelet without a name": {User{Username: "system:node:", Groups: []string{"system:nodes"}}, ""},
	} {
		if got := NodeOf(c.who); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Two questions that differ in anything that RBAC looks at are remembered apart.
func TestRightKey(t *testing.T) {
	t.Parallel()
	who := func(name, uid string, groups ...string) User { return User{Username: name, UID: uid, Groups: groups} }
	q := Question{"create", "allocations", "a"}
	seen := map[[32]byte]string{}
	for name, key := range map[string][32]byte{
		"one":                    rightKey(who("a", "1", "g"), q),
		"another user":           rightKey(who("b", "1", "g"), q),
		"another UID":            rightKey(who("a", "2", "g"), q),
		"another group":          rightKey(who("a", "1", "h"), q),
		"no group":               rightKey(who("a", "1"), q),
		"two groups":             rightKey(who("a", "1", "g", "h"), q),
		"another verb":           rightKey(who("a", "1", "g"), Question{"delete", "allocations", "a"}),
		"another kind":           rightKey(who("a", "1", "g"), Question{"create", "gc", "a"}),
		"all namespaces":         rightKey(who("a", "1", "g"), Question{"create", "allocations", ""}),
		"a group with a newline": rightKey(who("a", "1", "g\nh"), q),
		"a group like an extra":  rightKey(who("a", "1", "g", "x=y"), q),
		"an extra": rightKey(User{
			Username: "a", UID: "1", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"x": {"y"}},
		}, q),
	} {
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s are one", name, other)
		}
		seen[key] = name
	}
	if seen[rightKey(who("a", "1", "g"), q)] != "one" {
		t.Error("the same question is two")
	}
}

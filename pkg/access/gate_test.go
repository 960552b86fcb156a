package access

import (
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A token or a role that is taken away counts for 40 seconds at most, and one that is given is refused for five. A real
// API server cannot be in the bubble; what one says of tokens and roles is for test/http.
func TestAnswersAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, counts, reviews := fake.NewClientset(), true, 0
		client.PrependReactor("create", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			reviews++
			switch o := a.(clienttesting.CreateAction).GetObject().(type) {
			case *authenticationv1.TokenReview:
				o.Status.Authenticated, o.Status.Audiences = counts, []string{Audience}
				o.Status.User.Username = "alice"
				return true, o, nil
			case *authorizationv1.SubjectAccessReview:
				o.Status.Allowed = counts
				return true, o, nil
			}
			return false, nil, nil
		})
		g := New(client, time.Now, slog.New(slog.DiscardHandler))
		r := &http.Request{Header: http.Header{"Authorization": {"Bearer t"}}}
		alice, q := User{Username: "alice"}, Question{Verb: "list", Resource: "allocations"}
		check := func(what string, want bool, asked int) {
			t.Helper()
			_, unknown := g.Identify(r)
			denied := g.Allow(t.Context(), alice, q)
			if (unknown == nil) != want || (denied == nil) != want || reviews != 2*asked {
				t.Errorf("%s: %v; %v; asked %d times for a token and a role, want %d", what, unknown, denied, reviews, 2*asked)
			}
		}
		check("at first", true, 1)
		counts = false
		<-time.After(remembered)
		check("taken away within 40 s", true, 1)
		<-time.After(time.Millisecond)
		check("taken away", false, 2)
		counts = true
		<-time.After(refused)
		check("given within 5 s", false, 2)
		<-time.After(time.Millisecond)
		check("given", true, 3)
	})
}

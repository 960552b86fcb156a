package store

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// reader is an account of a test's own, whose rights on addresses the test gives and takes.
type reader struct {
	*Client
	tap     *intercept.Tap // what reaches the API server
	ahead   atomic.Int64   // of the clock by which it waits
	binding *rbacv1.ClusterRoleBinding
}

func newReader(t *testing.T, verbs ...string) *reader {
	t.Helper()
	cfg, err := cluster.ServiceAccountConfig(t.Context(), "default", "roles")
	if err != nil {
		t.Fatal(err)
	}
	name := metav1.ObjectMeta{Name: "roles-" + verbs[len(verbs)-1]}
	role := &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{v1.IPResource}, Verbs: verbs},
	}}
	if err := cluster.AdminFor(t).Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	r := &reader{tap: &intercept.Tap{}, binding: &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "roles"}},
	}}
	cfg.Wrap(r.tap.Wrap)
	cfg.Wrap(newRBACWarmup(slog.New(slog.DiscardHandler),
		func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }).wrap)
	r.Client = connectTo(t, cfg, nil)
	return r
}

// may gives the account its rights, or takes them, and waits until the API server knows.
func (r *reader) may(t *testing.T, permitted bool) {
	t.Helper()
	admin := cluster.AdminFor(t)
	var err error
	if permitted {
		r.binding.ResourceVersion = ""
		err = admin.Create(t.Context(), r.binding)
	} else {
		err = admin.Delete(t.Context(), r.binding)
	}
	if err != nil {
		t.Fatal(err)
	}
	plain, err := cluster.ServiceAccountConfig(t.Context(), "default", "roles")
	if err != nil {
		t.Fatal(err)
	}
	c := connectTo(t, plain, nil)
	controlplane.Until(t, "the API server knows the roles", func() bool {
		_, err := c.Get(t.Context(), netip.MustParseAddr("10.255.255.254"))
		return apierrors.IsForbidden(err) != permitted
	})
}

// What an API server forbids that permitted it before is asked for again until it permits it. What it never
// permitted is forbidden at once, and so is what a policy refuses, and what is forbidden for long.
func TestAwaitRoles(t *testing.T) {
	ofAddresses := intercept.Of(v1.IPResource)
	r := newReader(t, "create", "get", "manage")
	l := available(subnet()(1))
	if _, err := r.Write(t.Context(), l); !apierrors.IsForbidden(err) {
		t.Fatalf("before any right: %v", err)
	}
	r.may(t, true)
	l = write(t, r.Client, l)
	mend := r.tap.On(ofAddresses, intercept.Answer(403, metav1.StatusReasonForbidden, 0))
	if _, err := r.Write(t.Context(), available(l.Addr.Next())); !apierrors.IsForbidden(err) {
		t.Fatalf("by a policy: %v", err)
	}
	mend()

	// waits asks without rights, and returns when the API server was asked twice.
	waits := func(ask func() error) <-chan error {
		r.may(t, false)
		r.tap.Forget()
		result := make(chan error, 1)
		go func() { result <- ask() }()
		controlplane.Until(t, "it was asked for twice", func() bool { return r.tap.Count(ofAddresses) > 1 })
		return result
	}
	get := func() error {
		_, err := r.Get(t.Context(), l.Addr)
		return err
	}
	for what, ask := range map[string]func() error{
		"read": get,
		"write": func() error {
			_, err := r.Write(t.Context(), available(l.Addr.Next()))
			return err
		},
	} {
		result := waits(ask)
		r.may(t, true)
		if err := <-result; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	result := waits(get)
	r.ahead.Store(int64(maxWarmup))
	if err := <-result; !apierrors.IsForbidden(err) {
		t.Errorf("a read that is forbidden for a minute: %v", err)
	}
	r.may(t, true)
	if err := get(); err != nil {
		t.Errorf("permitted again: %v", err)
	}
}

func TestRightOf(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]right{
		"/api/v1/pods":                           {"", "/pods"},
		"/api/v1/namespaces/a/pods/b":            {"a", "/pods"},
		"/api/v1/namespaces/a/pods/b/status":     {"a", "/pods"},
		"/api/v1/namespaces/a":                   {"", "/namespaces"},
		"/apis/a.example/v1/bcsnetips/10.0.0.1":  {"", "a.example/bcsnetips"},
		"/apis/a.example/v1/namespaces/b/leases": {"b", "a.example/leases"},
		"/version":                               {"", "/version"},
		"/":                                      {"", "/"},
	} {
		if got := rightOf(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

// What was permitted in one namespace says nothing about another; what was in the whole cluster does.
func TestRolesOfNamespaces(t *testing.T) {
	t.Parallel()
	o := newRBACWarmup(slog.New(slog.DiscardHandler), time.Now)
	ask := func(path string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, path := range []string{"/apis/coordination.k8s.io/v1/namespaces/bcsnet-system/leases/a", "/api/v1/pods"} {
		o.permit(ask(path))
	}
	for path, want := range map[string]bool{
		"/apis/coordination.k8s.io/v1/namespaces/bcsnet-system/leases/b":   true,
		"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a": false,
		"/api/v1/namespaces/shop/pods/web":                                 true,
	} {
		if got := o.waits(ask(path)); got != want {
			t.Errorf("%s: waits is %v, want %v", path, got, want)
		}
	}
}

// What one start of the API server forbids until it is believed is waited for again in the next start. A request that
// its caller gives up says nothing about the API server.
func TestEachStartIsWaitedFor(t *testing.T) {
	now := time.Now()
	const forbidden = `{"kind":"Status","code":403,"message":"User \"a\" cannot delete resource"}`
	answer, lost := http.StatusOK, error(nil)
	o := newRBACWarmup(slog.New(slog.DiscardHandler), func() time.Time { return now })
	server := o.wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		if lost != nil {
			return nil, lost
		}
		return &http.Response{StatusCode: answer, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(forbidden))}, nil
	}))
	ask := func(ctx context.Context, method string) int {
		r, err := http.NewRequestWithContext(ctx, method, "http://api/apis/g/v1/things/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.RoundTrip(r)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close() // always nil
		return resp.StatusCode
	}
	ask(t.Context(), http.MethodGet)
	answer = http.StatusForbidden
	if got := ask(t.Context(), http.MethodDelete); got != http.StatusTooManyRequests {
		t.Fatalf("in the first start: %d", got)
	}
	now = now.Add(time.Hour)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	lost = context.Canceled
	ask(gone, http.MethodGet)
	lost = nil
	if got := ask(t.Context(), http.MethodDelete); got != http.StatusForbidden {
		t.Fatalf("forbidden for an hour: %d", got)
	}
	lost = errors.New("connection refused")
	ask(t.Context(), http.MethodGet)
	lost = nil
	if got := ask(t.Context(), http.MethodDelete); got != http.StatusTooManyRequests {
		t.Fatalf("in the next start: %d", got)
	}
}

package http_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestProfiles asks for profiles: they are served only with --profiling, and only to whom RBAC allows them.
func TestProfiles(t *testing.T) {
	t.Parallel()
	d := &door{site: newSite(t)}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: d.Namespace + "-profiles"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{"profiles"}, Verbs: []string{"get"}}},
	}
	if err := shared.admin.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.admin.Delete(context.Background(), role) })
	developer, viewer := d.token(t, "developer", "bcsnet", ""), d.token(t, "viewer", "bcsnet", "")
	d.bind(t, "developer", role.Name, "")
	d.bind(t, "viewer", "bcsnet-viewer", "")
	other := d.token(t, "developer", "other", "")

	pages := func(profiling bool) string {
		at, err := controlplane.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		startFor(t, account(t, shared.cluster), func(o *controller.Options) {
			o.LeaderElectionNamespace, o.LeaderElect = d.Namespace, false
			o.Profiling, o.MetricsBindAddress = profiling, at.String()
		})
		return "http://" + at.String()
	}
	get := func(url, token string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	with, without := pages(true), pages(false)
	for name, c := range map[string]struct {
		url, token string
		want       int
	}{
		"metrics need no token":      {with + "/metrics", "", http.StatusOK},
		"no flag":                    {without + "/debug/pprof/heap", "Bearer " + developer, http.StatusNotFound},
		"allowed":                    {with + "/debug/pprof/heap", "Bearer " + developer, http.StatusOK},
		"the index":                  {with + "/debug/pprof/", "Bearer " + developer, http.StatusOK},
		"longer than a page may":     {with + "/debug/pprof/trace?seconds=6", "Bearer " + developer, http.StatusOK},
		"longer than a profile may":  {with + "/debug/pprof/profile?seconds=61", "Bearer " + developer, http.StatusBadRequest},
		"seconds that are no number": {with + "/debug/pprof/goroutine?seconds=x", "Bearer " + developer, http.StatusBadRequest},
		"a profile that is not":      {with + "/debug/pprof/nothing", "Bearer " + developer, http.StatusNotFound},
		"nobody":                     {with + "/debug/pprof/heap", "", http.StatusUnauthorized},
		"another scheme":             {with + "/debug/pprof/cmdline", "Basic " + developer, http.StatusUnauthorized},
		"another audience":           {with + "/debug/pprof/heap", "Bearer " + other, http.StatusUnauthorized},
		"a viewer":                   {with + "/debug/pprof/symbol", "Bearer " + viewer, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			if got, text := get(c.url, c.token); got != c.want {
				t.Errorf("%d, want %d: %s", got, c.want, text)
			}
		})
	}
}

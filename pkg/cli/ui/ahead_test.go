package ui

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// TestAhead: of a page that takes long the beginning comes before the API server has answered, and then the page, why
// there is none, or where it leads.
func TestAhead(t *testing.T) {
	if err := manifests(); err != nil {
		t.Fatal(err)
	}
	account, err := cluster.ServiceAccountConfig(t.Context(), "default", "slow")
	if err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	close(open)
	var gate atomic.Value // requests wait until this channel is closed
	gate.Store(open)
	var api *intercept.API
	api = intercept.NewAPI(t, account, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-gate.Load().(chan struct{}):
			api.Forward.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfigFor(api.Config(), path); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, path)
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 0, 0), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "slow"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "slow"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bcsnet-viewer"},
	})
	s.get(t, s.viewer, Link(s.server.Token(), "/"))
	controlplane.Eventually(t, func() error {
		if status, text := s.get(t, s.viewer, "/"); status != http.StatusOK {
			return fmt.Errorf("%d: %s", status, text)
		}
		return nil
	})
	for page, want := range map[string]string{
		"/pool/blue": "10.1.0.0/24", "/pool/bleu": "there is no pool bleu", "/search?q=blue": `url=/pool/blue"`,
	} {
		for _, encoding := range []string{"identity", "gzip"} { // the client asks for gzip by itself
			shut := make(chan struct{})
			gate.Store(shut)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at+page, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if encoding != "gzip" {
				r.Header.Set("Accept-Encoding", encoding)
			}
			answer, err := s.viewer.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text := bufio.NewReader(answer.Body)
			for {
				line, err := text.ReadString('\n')
				if err != nil {
					t.Fatalf("%s: the beginning does not come: %v", page, err)
				}
				if strings.Contains(line, "The cluster is being read") {
					break
				}
			}
			close(shut)
			rest, err := io.ReadAll(text)
			_ = answer.Body.Close() // it was read
			if err != nil || !strings.Contains(string(rest), want) || !strings.HasSuffix(strings.TrimSpace(string(rest)), "</html>") ||
				strings.Contains(string(rest), "<!doctype") {
				t.Errorf("%s: %v, then comes\n%s", page, err, rest)
			}
		}
	}
}

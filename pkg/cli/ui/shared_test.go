package ui

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// pagesOf are the pages of a cluster, as one replica serves them, and a browser.
type pagesOf struct {
	client.Client
	door    *tokens
	at      string
	browser *http.Client
}

// newPages starts a replica with the certificate that a directory has.
func newPages(t *testing.T, dir string) *pagesOf {
	t.Helper()
	if err := manifests(); err != nil {
		t.Fatal(err)
	}
	a := app.New("bcsnetctl", "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, cluster.Config.CAData, 0o600); err != nil {
		t.Fatal(err)
	}
	*a.Flags.KubeConfig, *a.Flags.APIServer, *a.Flags.CAFile = os.DevNull, cluster.Config.Host, ca
	door, err := Shared{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}.door(a)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := door.server.serve(ctx, l, door.pair.tls()); err != nil {
			t.Error(err)
		}
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cluster.Config.CAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		serving.Wait()
	})
	return &pagesOf{cluster.AdminFor(t), door, "https://" + l.Addr().String(), &http.Client{Jar: jar, Transport: transport}}
}

// certified returns a directory with a certificate.
func certified(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, _, err := cluster.ServingCertificate(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ask sends a request: a POST of a form, or a GET where there is none.
func (p *pagesOf) ask(t *testing.T, path string, form url.Values) (int, string) {
	t.Helper()
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(t.Context(), method, p.at+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := p.browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// login logs in, and returns what the page says to which that leads.
func (p *pagesOf) login(t *testing.T, token, to string) (int, string) {
	t.Helper()
	return p.ask(t, "/login", url.Values{"token": {token}, "to": {to}})
}

// user makes a ServiceAccount with a role, in a namespace or everywhere, and returns its token.
func (p *pagesOf) user(t *testing.T, name, role, namespace string) string {
	t.Helper()
	cfg, err := cluster.ServiceAccountConfig(t.Context(), "default", name)
	if err != nil {
		t.Fatal(err)
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}}
	var binding client.Object = &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ui-" + name}, RoleRef: ref, Subjects: subjects,
	}
	if namespace != "" {
		binding = &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "ui-" + name, Namespace: namespace}, RoleRef: ref, Subjects: subjects,
		}
	}
	if role != "" {
		if err := p.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Delete(context.Background(), binding) })
	}
	return cfg.BearerToken
}

// TestShared: who logs in by a token sees what that may read, at any replica that has the same key, until they log out.
func TestShared(t *testing.T) {
	dir := certified(t)
	p := newPages(t, dir)
	s := &site{Client: p.Client}
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 1, 0), held("10.1.0.20", "blue", "10.0.0.11", "shop/web-0"))
	if status, text := p.ask(t, "/pool/blue", nil); status != http.StatusUnauthorized || strings.Contains(text, "10.1.0") ||
		!strings.Contains(text, `name="to" value="/pool/blue"`) {
		t.Fatalf("a stranger sees: %d %s", status, text)
	}
	status, text := p.login(t, p.user(t, "pages-viewer", "bcsnet-viewer", ""), "/pool/blue")
	if status != http.StatusOK || !strings.Contains(text, "shop/web-0") ||
		!strings.Contains(text, "system:serviceaccount:default:pages-viewer") {
		t.Fatalf("a viewer sees: %d %s", status, text)
	}
	at, err := url.Parse(p.at)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		dir  string
		want int
	}{"another replica": {dir, http.StatusOK}, "another key": {certified(t), http.StatusUnauthorized}} {
		other := newPages(t, tc.dir)
		to, err := url.Parse(other.at)
		if err != nil {
			t.Fatal(err)
		}
		other.browser.Jar.SetCookies(to, p.browser.Jar.Cookies(at))
		if status, _ := other.ask(t, "/pool/blue", nil); status != tc.want {
			t.Errorf("%s answers %d, want %d", name, status, tc.want)
		}
	}
	cookies := p.browser.Jar.Cookies(at)
	if status, _ := p.ask(t, "/logout", url.Values{}); status != http.StatusUnauthorized {
		t.Errorf("who has logged out sees %d", status)
	}
	p.browser.Jar.SetCookies(at, cookies)
	if status, _ := p.ask(t, "/pool/blue", nil); status != http.StatusUnauthorized {
		t.Errorf("a copy of the cookie sees %d after that", status)
	}
}

// TestPartsByRights: parts that a visitor may not read are left out, with words for the right that is missing and the
// role that gives it. A page of which nothing is left says so as a whole.
func TestPartsByRights(t *testing.T) {
	p := newPages(t, certified(t))
	s := &site{Client: p.Client}
	claim := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(1))}}
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 1, 0), held("10.1.0.20", "blue", "10.0.0.11", "default/web-0"), claim)
	counter := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "pages-counter"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{v1.PoolResource}, Verbs: []string{"get", "list", "watch"},
	}}}
	s.make(t, counter)
	for name, tc := range map[string]struct {
		role, namespace string
		// shown are pages with what they show, and what they must not.
		shown map[string][2]string
		// refused are pages of which nothing is shown.
		refused []string
	}{
		"tenant": {"bcsnet-viewer", "default", map[string][2]string{
			"/namespace/default": {"/claim/default/web", "10.1.0.20"}, "/claim/default/web": {"web", "10.1.0.20"},
			"/problems": {"cannot be read", "10.1.0.20"},
		}, []string{"/", "/pool/blue", "/ip/10.1.0.20", "/host/10.0.0.11", "/claim/shop/web", "/network/prod", "/search?q=web"}},
		"counter": {"pages-counter", "", map[string][2]string{
			"/": {"blue", "web-0"}, "/pool/blue": {"10.1.0.0/24", "web-0"}, "/namespace/default": {"default", "web-0"},
		}, []string{"/ip/10.1.0.20", "/host/10.0.0.11", "/claim/default/web"}},
		"nobody": {"", "", nil, []string{"/", "/pool/blue", "/ip/10.1.0.20", "/claim/default/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			p.ask(t, "/logout", url.Values{})
			p.login(t, p.user(t, "pages-"+name, tc.role, tc.namespace), "/")
			for path, words := range tc.shown {
				status, text := p.ask(t, path, nil)
				if status != http.StatusOK || !strings.Contains(text, words[0]) || strings.Contains(text, words[1]) {
					t.Errorf("%s: %d, want %q and no %q:\n%s", path, status, words[0], words[1], text)
				}
				if path != "/" && path != "/problems" && !strings.Contains(text, "The ClusterRole bcsnet-viewer gives that right") {
					t.Errorf("%s does not say what is missing:\n%s", path, text)
				}
			}
			for _, path := range tc.refused {
				status, text := p.ask(t, path, nil)
				if status != http.StatusForbidden || !strings.Contains(text, "you may not") || !strings.Contains(text, "--clusterrole=bcsnet-viewer") {
					t.Errorf("%s: %d\n%s", path, status, text)
				}
			}
		})
	}
}

// TestSessionEnds: what follows pages ends with the session, and so does the cookie.
func TestSessionEnds(t *testing.T) {
	p := newPages(t, certified(t))
	text, err := json.Marshal(session{ID: "short", Name: "ann", Token: p.user(t, "pages-short", "bcsnet-viewer", ""),
		Until: time.Now().Add(2 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	cookie := sessionCookie + "=" + p.door.pair.seal(text)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.at+"/events?page=/&have=", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Cookie", cookie)
	answer, err := p.browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if sent, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK || !strings.Contains(string(sent), "event: page") {
		t.Errorf("the stream: %d %s", answer.StatusCode, sent)
	}
	r = r.Clone(t.Context())
	r.URL.Path, r.URL.RawQuery = "/", ""
	again, err := p.browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Body.Close()
	if again.StatusCode != http.StatusUnauthorized {
		t.Errorf("the cookie is answered %d after that", again.StatusCode)
	}
}

// TestCertificateChanges: a new certificate is shown without a start, cookies of the key before it still count, and
// files that do not fit are not taken over.
func TestCertificateChanges(t *testing.T) {
	dir := certified(t)
	k, err := newKeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	first, _ := k.newest()
	sealed := k.seal([]byte("x"))
	if _, _, err := cluster.ServingCertificate(dir); err != nil {
		t.Fatal(err)
	}
	k.looked = time.Time{}
	second, _ := k.newest()
	if text, err := k.open(sealed); first == second || err != nil || string(text) != "x" {
		t.Errorf("after a change: %v %q %v", first == second, text, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.key"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.looked = time.Time{}
	if third, _ := k.newest(); third != second {
		t.Error("a key that does not fit is taken over")
	}
	for range 2 {
		if _, _, err := cluster.ServingCertificate(dir); err != nil {
			t.Fatal(err)
		}
		k.looked = time.Time{}
		k.newest()
	}
	if _, err := k.open(sealed); err == nil {
		t.Error("a cookie of three keys ago counts")
	}
}

// TestUntil: a session ends with its token, and after half a day at most.
func TestUntil(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for token, want := range map[string]time.Duration{
		"static": longest, "a.b.c": longest, "a.e30.c": longest,
		"a.eyJleHAiOjE4MDAwMDM2MDB9.c": time.Hour, "a.eyJleHAiOjE5MDAwMDAwMDB9.c": longest, "a.eyJleHAiOi0xfQ.c": longest,
	} {
		if got := until(token, now).Sub(now); got != want {
			t.Errorf("%s ends in %s, want %s", token, got, want)
		}
	}
}

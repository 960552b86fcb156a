package attacks_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/ui"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// browsers are attacks on the pages of a cluster.
func browsers() []attack {
	return []attack{
		{"pages_without_a_login", pagesUnseen}, {"pages_by_another_name", pagesRenamed},
		{"pages_asked_by_another_site", pagesCrossed}, {"pages_that_change_something", pagesPosted},
		{"cookie_after_the_logout", cookieKept}, {"cookie_of_another_key", cookieForged},
		{"token_in_a_URL_or_in_the_log", tokenLeaked}, {"pages_with_a_token_for_another_audience", tokenElsewhere},
		{"pages_for_a_viewer_of_one_namespace", viewerOfOne}, {"tokens_tried_without_end", tokensTried},
		{"token_of_ten_megabytes", tokenHuge},
	}
}

// webPages are the pages of a cluster as one replica serves them, with the API server as all that it knows.
type webPages struct {
	at     string
	log    *syncBuffer
	client *http.Client
}

// syncBuffer is a buffer that several write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}
func (s *syncBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

// newWebPages starts a replica with a key of its own.
func newWebPages(t *testing.T) *webPages {
	t.Helper()
	dir, ca := t.TempDir(), filepath.Join(t.TempDir(), "ca.crt")
	certFile, keyFile, err := shared.cluster.ServingCertificate(dir)
	if err = errors.Join(err, os.WriteFile(ca, shared.cluster.Config.CAData, 0o600)); err != nil {
		t.Fatal(err)
	}
	p := &webPages{log: &syncBuffer{}}
	a := app.New("bcsnetctl", "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: p.log, ErrOut: p.log})
	*a.Flags.KubeConfig, *a.Flags.APIServer, *a.Flags.CAFile = os.DevNull, shared.cluster.Config.Host, ca
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := (ui.Shared{CertFile: certFile, KeyFile: keyFile}).Serve(ctx, a, l); err != nil {
			t.Error(err)
		}
	})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(shared.cluster.Config.CAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		serving.Wait()
	})
	p.at = "https://" + l.Addr().String()
	p.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p
}

// do sends a request as it is changed, and returns the answer with its text.
func (p *webPages) do(t *testing.T, method, path, body string, change ...func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.at+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, do := range change {
		do(r)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// login logs in, and returns the header by which a browser shows the cookie.
func (p *webPages) login(t *testing.T, token string) func(*http.Request) {
	t.Helper()
	answer, text := p.do(t, http.MethodPost, "/login", url.Values{"token": {token}}.Encode())
	if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 {
		t.Fatalf("login: %s %s", answer.Status, text)
	}
	c := answer.Cookies()[0]
	if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" ||
		c.Domain != "" || c.MaxAge <= 0 || strings.Contains(c.Value, token) {
		t.Errorf("the cookie is %+v", c)
	}
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value}) }
}

// sees fails the test unless a page answers with a status, and shows the victim's address with 200 alone.
func (p *webPages) sees(t *testing.T, w *world, what string, want int, change ...func(*http.Request)) {
	t.Helper()
	answer, text := p.do(t, http.MethodGet, "/pool/shop", "", change...)
	if answer.StatusCode != want || strings.Contains(text, w.address) != (want == http.StatusOK) {
		t.Errorf("%s: %s, want %d:\n%.300s", what, answer.Status, want, text)
	}
}

// tells reports whether an answer tells more of the victim than who asked has said.
func (w *world) tells(path, text string) bool {
	for _, word := range []string{w.address, "web-theirs"} {
		if strings.Contains(text, word) && !strings.Contains(path, word) {
			return true
		}
	}
	return false
}

// audienceOfAPI is the audience of the API server here.
const audienceOfAPI = "https://kubernetes.default.svc.cluster.local"

// tokenOfAPI returns the token of an account for the API server.
func (w *world) tokenOfAPI(t *testing.T, account string) string {
	t.Helper()
	return w.tokenFor(t, account, "", audienceOfAPI)
}

func pagesUnseen(t *testing.T, w *world) {
	p := newWebPages(t)
	p.sees(t, w, "nothing", http.StatusUnauthorized)
	for _, path := range []string{
		"/", "/pool/shop", "/ip/" + w.address, "/host/" + theirs, "/namespace/" + shop, "/problems", "/why?pod=shop/web-theirs",
		"/search?q=web", "/events?page=/pool/shop&have=", "//pool/shop", "/static/../pool/shop", "/static/%2e%2e/pool/shop", "/healthz",
		"/login", "/POOL/shop", "/debug/pprof/", "/metrics",
	} {
		if answer, text := p.do(t, http.MethodGet, path, ""); answer.StatusCode == http.StatusOK && path != "/healthz" ||
			w.tells(path, text) {
			t.Errorf("%s: %s %.300s", path, answer.Status, text)
		}
	}
	p.sees(t, w, "a token in the header", http.StatusUnauthorized, func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+w.tokenOfAPI(t, "viewer"))
	})
}

func pagesRenamed(t *testing.T, w *world) {
	p := newWebPages(t)
	cookie := p.login(t, w.tokenOfAPI(t, "viewer"))
	p.sees(t, w, "its own name", http.StatusOK, cookie)
	for _, host := range []string{"rebound.example", "10.0.0.1", "localhost.evil.example", "127.0.0.1.evil.example:443", "[::]", "*"} {
		p.sees(t, w, host, http.StatusMisdirectedRequest, cookie, func(r *http.Request) { r.Host = host })
	}
}

func pagesCrossed(t *testing.T, w *world) {
	p := newWebPages(t)
	token := w.tokenOfAPI(t, "viewer")
	cookie := p.login(t, token)
	for name, change := range map[string]func(*http.Request){
		"origin":     func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"no origin":  func(r *http.Request) { r.Header.Set("Origin", "null") },
		"other port": func(r *http.Request) { r.Header.Set("Origin", "https://127.0.0.1:1") },
		"plain HTTP": func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"script":     func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"other host": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"sub-request": func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "cors")
		},
	} {
		p.sees(t, w, name, http.StatusForbidden, cookie, change)
		for _, path := range []string{"/login", "/logout"} {
			answer, _ := p.do(t, http.MethodPost, path, url.Values{"token": {token}}.Encode(), cookie, change)
			if answer.StatusCode != http.StatusForbidden || len(answer.Cookies()) > 0 {
				t.Errorf("%s: %s answers %s", name, path, answer.Status)
			}
		}
	}
	answer, _ := p.do(t, http.MethodPost, "/logout", "", cookie, func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate") // a form of another site
	})
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another site: %s", answer.Status)
	}
	p.sees(t, w, "the user after all that", http.StatusOK, cookie)
}

func pagesPosted(t *testing.T, w *world) {
	p := newWebPages(t)
	cookie := p.login(t, w.tokenOfAPI(t, "operator"))
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "post"} {
		for _, path := range []string{"/pool/shop", "/ip/" + w.address, "/host/" + theirs, "/", "/events", prefix} {
			if answer, _ := p.do(t, method, path, "", cookie); answer.StatusCode < 400 {
				t.Errorf("%s %s: %s", method, path, answer.Status)
			}
		}
	}
}

func cookieKept(t *testing.T, w *world) {
	p := newWebPages(t)
	cookie := p.login(t, w.tokenOfAPI(t, "viewer"))
	other := p.login(t, w.tokenOfAPI(t, "viewer"))
	if answer, _ := p.do(t, http.MethodPost, "/logout", "", cookie); answer.Cookies()[0].MaxAge >= 0 {
		t.Errorf("the logout leaves the cookie: %v", answer.Cookies())
	}
	p.sees(t, w, "a copy of the cookie", http.StatusUnauthorized, cookie)
	p.sees(t, w, "another session of the user", http.StatusOK, other)
	pod := w.pod(t, shop, "browser", nodeMine, "viewer")
	bound := p.login(t, w.tokenFor(t, "viewer", "browser", audienceOfAPI))
	p.sees(t, w, "a token of a pod", http.StatusOK, bound)
	if err := shared.admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error {
		if answer, _ := p.do(t, http.MethodGet, "/pool/shop", "", bound); answer.StatusCode != http.StatusUnauthorized {
			return errors.New("a token that has ended: " + answer.Status)
		}
		return nil
	})
}

func cookieForged(t *testing.T, w *world) {
	p, q := newWebPages(t), newWebPages(t)
	cookie := q.login(t, w.tokenOfAPI(t, "viewer"))
	q.sees(t, w, "the server of the cookie", http.StatusOK, cookie)
	p.sees(t, w, "a server with another key", http.StatusUnauthorized, cookie)
	good := p.login(t, w.tokenOfAPI(t, "viewer"))
	for name, change := range map[string]func(string) string{
		"cut":     func(v string) string { return v[:len(v)-1] },
		"longer":  func(v string) string { return v + "A" },
		"changed": func(v string) string { return v[:20] + flip(v[20]) + v[21:] },
		"empty":   func(string) string { return "" },
		"token":   func(string) string { return w.tokenOfAPI(t, "viewer") },
		"text":    func(string) string { return "eyJuYW1lIjoiYWRtaW4ifQ" },
	} {
		p.sees(t, w, name, http.StatusUnauthorized, good, func(r *http.Request) {
			c := r.Cookies()[0]
			r.Header.Set("Cookie", c.Name+"="+change(c.Value))
		})
	}
}

// flip returns another letter.
func flip(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

func tokenLeaked(t *testing.T, w *world) {
	p := newWebPages(t)
	token := w.tokenOfAPI(t, "viewer")
	for _, path := range []string{"/login?token=" + token, "/?token=" + token, "/pool/shop?token=" + token} {
		if answer, text := p.do(t, http.MethodGet, path, ""); len(answer.Cookies()) > 0 || answer.StatusCode == http.StatusOK ||
			strings.Contains(answer.Header.Get("Location"), token) || strings.Contains(text, w.address) {
			t.Errorf("a URL with a token: %s %v", answer.Status, answer.Header)
		}
	}
	answer, _ := p.do(t, http.MethodPost, "/login?token="+token, "")
	if len(answer.Cookies()) > 0 {
		t.Error("a token of a URL lets somebody in")
	}
	cookie := p.login(t, token)
	_, text := p.do(t, http.MethodGet, "/pool/shop", "", cookie)
	if answer, refused := p.do(t, http.MethodPost, "/login", url.Values{"token": {token + "x"}}.Encode()); answer.StatusCode !=
		http.StatusForbidden || strings.Contains(refused, token) {
		t.Errorf("the answer to a wrong token: %s", answer.Status)
	}
	if strings.Contains(text, token) || strings.Contains(p.log.String(), token) || strings.Contains(p.log.String(), token[:40]) {
		t.Errorf("the token is shown: %s", p.log)
	}
	if !strings.Contains(p.log.String(), "system:serviceaccount:shop:viewer has logged in") {
		t.Errorf("the log does not say who has logged in: %s", p.log)
	}
}

func tokenElsewhere(t *testing.T, w *world) {
	p := newWebPages(t)
	for name, token := range map[string]string{
		"for the allocator": w.viewer, "unsigned": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.", "word": "admin",
	} {
		if answer, _ := p.do(t, http.MethodPost, "/login", url.Values{"token": {token}}.Encode()); answer.StatusCode !=
			http.StatusForbidden || len(answer.Cookies()) > 0 {
			t.Errorf("a token %s: %s", name, answer.Status)
		}
	}
	for name, token := range map[string]string{"of nothing": "", "of two words": "a b", "with a line": "a\nb", "unseen": "a\u202eb"} {
		if answer, _ := p.do(t, http.MethodPost, "/login", url.Values{"token": {token}}.Encode()); answer.StatusCode !=
			http.StatusBadRequest {
			t.Errorf("a token %s: %s", name, answer.Status)
		}
	}
}

func viewerOfOne(t *testing.T, w *world) {
	p := newWebPages(t)
	cookie := p.login(t, w.tokenOfAPI(t, "tenant"))
	p.sees(t, w, "the pool", http.StatusForbidden, cookie)
	for _, path := range []string{
		"/", "/ip/" + w.address, "/host/" + theirs, "/namespace/" + shop, "/namespace/" + tenant, "/search?q=web-theirs",
		"/why?pod=" + shop + "/web-theirs", "/problems", "/claim/" + shop + "/x",
	} {
		if answer, text := p.do(t, http.MethodGet, path, "", cookie); w.tells(path, text) {
			t.Errorf("%s: %s tells of the victim", path, answer.Status)
		}
	}
	full := p.login(t, w.tokenOfAPI(t, "viewer"))
	p.sees(t, w, "a viewer beside", http.StatusOK, full)
	p.sees(t, w, "the tenant after that", http.StatusForbidden, cookie)
}

func tokensTried(t *testing.T, w *world) {
	p := newWebPages(t)
	cookie := p.login(t, w.tokenOfAPI(t, "viewer"))
	count := map[int]int{}
	const tries = 200
	for i := range tries {
		answer, _ := p.do(t, http.MethodPost, "/login", url.Values{"token": {fmt.Sprintf("a.b.%d", i)}}.Encode())
		count[answer.StatusCode]++
	}
	if count[http.StatusTooManyRequests] < tries/2 || count[http.StatusForbidden]+count[http.StatusTooManyRequests] != tries {
		t.Errorf("%d tokens are answered %v", tries, count)
	}
	p.sees(t, w, "who has logged in", http.StatusOK, cookie)
}

func tokenHuge(t *testing.T, w *world) {
	p := newWebPages(t)
	before := heap()
	for range 5 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.at+"/login", io.MultiReader(
			strings.NewReader("token="), io.LimitReader(letters{}, 10<<20)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := p.client.Do(r)
		if err != nil {
			continue // the connection was closed on the rest
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s", answer.Status)
		}
	}
	if grown := heap() - before; grown > mostHeap {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	long := w.tokenOfAPI(t, "viewer") + strings.Repeat("x", 5000)
	if answer, _ := p.do(t, http.MethodPost, "/login", url.Values{"token": {long}}.Encode()); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a long token: %s", answer.Status)
	}
	p.login(t, w.tokenOfAPI(t, "viewer"))
}

// letters is a text without an end.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

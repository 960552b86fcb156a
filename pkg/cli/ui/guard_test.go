package ui

import (
	"net/http"
	"strings"
	"testing"
)

// TestStrangers: who has not followed the link, names another machine, or comes from another site, sees nothing.
func TestStrangers(t *testing.T) {
	s := entered(t)
	for name, tc := range map[string]struct {
		who    *http.Client
		change func(*http.Request)
		want   int
	}{
		"no cookie":                  {s.stranger, func(*http.Request) {}, http.StatusUnauthorized},
		"another cookie":             {s.stranger, func(r *http.Request) { r.Header.Set("Cookie", cookieName+"=guessed") }, http.StatusUnauthorized},
		"empty cookie":               {s.stranger, func(r *http.Request) { r.Header.Set("Cookie", cookieName+"=") }, http.StatusUnauthorized},
		"forged host":                {s.viewer, func(r *http.Request) { r.Host = "rebound.example:80" }, http.StatusMisdirectedRequest},
		"address of the network":     {s.viewer, func(r *http.Request) { r.Host = "10.0.0.11:8090" }, http.StatusMisdirectedRequest},
		"a name that begins like it": {s.viewer, func(r *http.Request) { r.Host = "localhost.evil.example" }, http.StatusMisdirectedRequest},
		"through ssh": {s.stranger, func(r *http.Request) {
			r.Host = "localhost:9000"
			r.Header.Set("Cookie", cookieName+"="+s.server.guard.session)
		}, http.StatusOK},
		"another origin":            {s.viewer, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, http.StatusForbidden},
		"another port":              {s.viewer, func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, http.StatusForbidden},
		"no origin at all":          {s.viewer, func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"a picture of another site": {s.viewer, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"a link of another site": {s.viewer, func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", "navigate")
		}, http.StatusOK},
		"post":   {s.viewer, func(r *http.Request) { r.Method = http.MethodPost }, http.StatusMethodNotAllowed},
		"delete": {s.viewer, func(r *http.Request) { r.Method = http.MethodDelete }, http.StatusMethodNotAllowed},
		"viewer": {s.viewer, func(*http.Request) {}, http.StatusOK},
	} {
		for _, path := range []string{"/", "/events?page=/&have="} {
			if tc.want == http.StatusOK && path != "/" {
				continue // it goes on
			}
			status, text := s.get(t, tc.who, path, tc.change)
			if status != tc.want {
				t.Errorf("%s: %s answers %d, want %d: %s", name, path, status, tc.want, text)
			}
		}
	}
}

// TestLink: the link works once. The browser that it let in may follow it again; if another one does, nobody stays in.
func TestLink(t *testing.T) {
	s := newSite(t, "")
	link := Link(s.server.Token(), "/?find=x")
	if status, _ := s.get(t, s.stranger, "/login?token=guessed"); status != http.StatusForbidden {
		t.Errorf("a wrong token: %d", status)
	}
	status, text := s.get(t, s.viewer, link)
	if status != http.StatusOK || !strings.Contains(text, `url=/?find=x`) {
		t.Fatalf("%d: %s", status, text)
	}
	if status, _ := s.get(t, s.viewer, link); status != http.StatusOK {
		t.Errorf("again, from the same browser: %d", status)
	}
	if status, _ := s.get(t, s.stranger, link); status != http.StatusForbidden {
		t.Errorf("from another browser: %d", status)
	}
	if status, _ := s.get(t, s.viewer, "/"); status != http.StatusUnauthorized {
		t.Errorf("the first browser is still in: %d", status)
	}
	if status, _ := s.get(t, s.viewer, Link(<-s.again, "/")); status != http.StatusOK {
		t.Errorf("the new link: %d", status)
	}
}

// TestLinkStaysHere: a link leads to a page of this server, whatever it says.
func TestLinkStaysHere(t *testing.T) {
	for _, to := range []string{"https://evil.example/", "//evil.example/", `/\evil.example`, `\\evil`, "javascript:alert(1)", "", "x"} {
		s := newSite(t, "")
		_, text := s.get(t, s.stranger, Link(s.server.Token(), to))
		if !strings.Contains(text, `content="0;url=/"`) {
			t.Errorf("%q leads to %s", to, text)
		}
	}
}

// TestHeaders: no answer may be framed, sniffed or kept, and none allows scripts but ours.
func TestHeaders(t *testing.T) {
	s := entered(t)
	for _, path := range []string{"/", "/nowhere", "/static/ui.js", "/static/../server.go", "/login"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := s.viewer.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		csp := answer.Header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") ||
			answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, answer.Header)
		}
	}
}

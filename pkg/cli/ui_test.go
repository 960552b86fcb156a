package cli

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
)

// TestUI: the command prints a link that leads to the page that a flag names, and ends with Ctrl-C.
func TestUI(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	g := f.start(t, "ui", "--no-browser", "--pool", "blue")
	if !g.lines.Scan() {
		t.Fatalf("it prints no link: %s", g.stderr.String())
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	at, _, _ := strings.Cut(g.lines.Text(), "/login")
	read(t, browser, g.lines.Text(), "/pool/blue")
	read(t, browser, at+"/pool/blue", "10.1.0.0/24")
	g.interrupt(t, "follow the link", "ssh -L", "the pages are closed")
	for _, args := range [][]string{{"ui", "--pool", "blue", "--host", "10.0.0.11"}, {"ui", "--claim", "web"}, {"ui", "blue"}} {
		if _, stderr := f.call(t, args...); !strings.Contains(stderr, "[exit 2]") {
			t.Errorf("%v: %s", args, stderr)
		}
	}
}

// read expects a text on a page.
func read(t *testing.T, browser *http.Client, url, want string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
		t.Errorf("%s: %d, %v: %s", url, answer.StatusCode, err, text)
	}
}

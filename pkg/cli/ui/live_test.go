package ui

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stream is a stream of events that is read.
type stream struct {
	answer *http.Response
	lines  *bufio.Scanner
}

func (s *site) follow(t *testing.T, query string) *stream {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at+"/events?"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.viewer.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() }) // it is read no more
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 8<<20)
	return &stream{answer, lines}
}

// message is what the server sends of a page.
type sent struct {
	Page     string `json:"page"`
	Problem  string `json:"problem"`
	Versions string `json:"versions"`
	On       bool   `json:"on"`
	Sections []struct {
		ID   string `json:"id"`
		Hash string `json:"hash"`
		HTML string `json:"html"`
	} `json:"sections"`
}

// until reads frames until one is as wanted.
func (s *stream) until(t *testing.T, what string, ok func(sent) bool) sent {
	t.Helper()
	for s.lines.Scan() {
		text, is := strings.CutPrefix(s.lines.Text(), "data: ")
		if !is {
			continue
		}
		var m sent
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if ok(m) {
			return m
		}
	}
	t.Fatalf("the stream ended before %s: %v", what, s.lines.Err())
	return sent{}
}

func has(m sent, text string) bool {
	for _, s := range m.Sections {
		if strings.Contains(s.HTML, text) {
			return true
		}
	}
	return false
}

// TestLive: a stream brings the sections of several pages that differ, and says that a pool is gone.
func TestLive(t *testing.T) {
	s := entered(t)
	blue := pool("blue", "10.1.0.0", 24, 253, 1, 0)
	s.make(t, blue, held("10.1.0.20", "blue", "10.0.0.11", "shop/web-0"))
	events := s.follow(t, "page=/pool/blue&have=&page=/&have=")
	first := events.until(t, "all of the pool", func(m sent) bool { return m.Page == "/pool/blue" && has(m, "shop/web-0") })
	s.make(t, held("10.1.0.21", "blue", "10.0.0.11", "shop/web-1"))
	second := events.until(t, "the new address", func(m sent) bool { return m.Page == "/pool/blue" && has(m, "shop/web-1") })
	if len(second.Sections) >= len(first.Sections) {
		t.Errorf("%d sections are sent, of %d", len(second.Sections), len(first.Sections))
	}
	again := s.follow(t, "page=/pool/blue&have="+second.Versions)
	if m := again.until(t, "the pool", func(sent) bool { return true }); len(m.Sections) > 1 {
		t.Errorf("who has all is sent %d sections", len(m.Sections))
	}
	if err := s.Delete(t.Context(), blue); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	s.drop(t, blue)
	left := map[string]bool{"/pool/blue": true, "/": true}
	events.until(t, "that the pool is gone, and the list without it", func(m sent) bool {
		if m.Page == "/pool/blue" && !m.On && strings.Contains(m.Problem, "there is no pool blue") ||
			m.Page == "/" && has(m, "There are no pools") {
			delete(left, m.Page)
		}
		return len(left) == 0
	})
}

// TestPoolFollowsItself: a change of another pool does not make the page of a pool again.
func TestPoolFollowsItself(t *testing.T) {
	s := entered(t)
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 1, 0))
	k, r, err := s.server.kinds.find("/pool/blue", &http.Request{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.server.build(t.Context(), r.WithContext(t.Context()), k, s.server.door.(*local).user)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range p.Watch {
		if w.Which.FieldSelector == "" {
			t.Errorf("it follows all %s", w.Kind.Resource)
		}
	}
}

// TestLiveBounds: what is no page is refused, and viewers beyond the bound are told so.
func TestLiveBounds(t *testing.T) {
	s := entered(t)
	for query, want := range map[string]string{
		"page=//evil.example&have=": "is not a page", "page=/nowhere&have=": "is not a page", "page=/problems/../pool/x&have=": "no",
	} {
		s.follow(t, query).until(t, query, func(m sent) bool { return !m.On && strings.Contains(m.Problem, want) })
	}
	for _, query := range []string{"", "page=/", strings.Repeat("page=/&have=&", mostPages+1)} {
		if status, _ := s.get(t, s.viewer, "/events?"+query); status != http.StatusBadRequest {
			t.Errorf("%q: %d", query, status)
		}
	}
	s.server.viewers.Add(mostViewers)
	status, text := s.get(t, s.viewer, "/events?page=/&have=")
	if status != http.StatusServiceUnavailable || !strings.Contains(text, fmt.Sprint(mostViewers)) {
		t.Errorf("%d: %s", status, text)
	}
}

package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Where as many are inside as may be, a namespace that has less than its share still gets in, and never more than twice
// as many.
func TestAdmissionIsFair(t *testing.T) {
	const most = 10
	var a admission
	var leave []func()
	fill := func(who string) (n int) {
		for n < 3*most {
			end, in := a.enter(who, most)
			if !in {
				break
			}
			leave = append(leave, end)
			n++
		}
		return n
	}
	if n := fill("crowd"); n != most {
		t.Errorf("%d of one namespace are inside, want %d", n, most)
	}
	if n := fill("other"); n != most/2 {
		t.Errorf("%d of a second one, want its share, %d", n, most/2)
	}
	for n := range 3 * most {
		fill(fmt.Sprint("another-", n))
	}
	if a.underWay != 2*most {
		t.Errorf("%d are inside, want at most %d", a.underWay, 2*most)
	}
	for _, end := range leave {
		end()
	}
	if a.underWay != 0 || len(a.by) != 0 {
		t.Errorf("left: %d, %v", a.underWay, a.by)
	}
}

// An ADD that finds too many others under way is refused before anything is done for it, at once and with when to come
// again. Other namespaces, DELs and pages get through.
func TestTooManyAddsAreRefused(t *testing.T) {
	f := newFixture(t, withoutAllocator)
	server := httptest.NewServer(f.handler)
	defer server.Close()
	ask := func(method, path, namespace string) (reason ipam.Reason, h http.Header) {
		t.Helper()
		body := fmt.Sprintf(`{"host":"10.0.0.11","containerID":"c","podName":"p","podNamespace":%q}`, namespace)
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Request-Id", "mine")
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var e wire.Envelope
		if err := json.Unmarshal(text, &e); err != nil {
			return ipam.Reason(strings.TrimSpace(string(text))), resp.Header
		}
		if e.RequestID != "mine" ||
			(e.Reason == ipam.ReasonOverloaded) != (resp.StatusCode == http.StatusServiceUnavailable) {
			t.Errorf("%d: %s", resp.StatusCode, text)
		}
		return e.Reason, resp.Header
	}
	var leave []func()
	for range maxAdds {
		end, in := f.limits.adds.enter("crowd/", maxAdds)
		if !in {
			t.Fatal("refused too early")
		}
		leave = append(leave, end)
	}
	reason, h := ask(http.MethodPost, wire.Prefix, "crowd")
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if reason != ipam.ReasonOverloaded || err != nil || seconds < 1 ||
		h.Get(headerReason) != string(ipam.ReasonOverloaded) {
		t.Errorf("%s, %v", reason, h)
	}
	if metrics := first(ask(http.MethodGet, "/metrics", "")); !strings.Contains(string(metrics),
		`bcsnet_requests_total{operation="allocate",reason="Overloaded"} 1`) {
		t.Error("the refusal is not counted with its reason")
	}
	for what, got := range map[string]ipam.Reason{
		"another namespace": first(ask(http.MethodPost, wire.Prefix, "calm")),
		"a DEL":             first(ask(http.MethodDelete, wire.Prefix, "crowd")),
	} {
		if got != ipam.ReasonInternal {
			t.Errorf("%s hears %q, want that it gets to the allocator", what, got)
		}
	}
	if got := first(ask(http.MethodGet, "/readyz", "")); got != "ok" {
		t.Errorf("/readyz says %q", got)
	}
	for _, end := range leave {
		end()
	}
	if got := first(ask(http.MethodPost, wire.Prefix, "crowd")); got != ipam.ReasonInternal {
		t.Errorf("when the others have gone: %q", got)
	}
	if f.limits.adds.underWay != 0 {
		t.Errorf("%d are still under way", f.limits.adds.underWay)
	}
}

func first(reason ipam.Reason, _ http.Header) ipam.Reason { return reason }

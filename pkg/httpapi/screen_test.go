package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// samples are a method and a path for each operation.
func samples(s *Service) (all [][2]string) {
	fill := strings.NewReplacer("{host}", "10.0.0.11", "{address}", "10.0.0.21", "{container}", "c", "{namespace}", "n",
		"{pod}", "p", "{pool}", "a", "{name}", "a")
	for _, op := range slices.Concat(s.routes(), s.galaxyRoutes()) {
		all = append(all, [2]string{op.method, fill.Replace(op.path)})
	}
	for path := range s.extenderRoutes() {
		all = append(all, [2]string{http.MethodPost, path})
	}
	for path := range s.pages() {
		all = append(all, [2]string{http.MethodGet, path})
	}
	return all
}

func (f *fixture) send(t *testing.T, r *http.Request) (status int, e wire.Envelope) {
	t.Helper()
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	_ = json.Unmarshal(w.Body.Bytes(), &e) // pages have none
	return w.Code, e
}

// A web page of another site is refused on every route, whatever it asks for, and curl, a plugin, or a page of this
// server on none.
func TestOtherSitesAreRefused(t *testing.T) {
	f := newFixture(t)
	for _, op := range samples(f.Service) {
		for _, c := range []struct {
			name, value string
			refused     bool
		}{
			{"Sec-Fetch-Site", "cross-site", true}, {"Sec-Fetch-Site", "same-site", true}, {"Sec-Fetch-Site", "same-origin", false}, {"Sec-Fetch-Site", "none", false},
			{"Origin", "https://attacker.example", true}, {"Origin", "null", true}, {"Origin", "http://127.0.0.1:8090", false}, {"Accept", "*/*", false},
		} {
			r := localRequest(op[0], op[1], strings.NewReader("{")) // of this machine; no route takes the body
			r.Header.Set(c.name, c.value)
			status, e := f.send(t, r)
			if refused := status == http.StatusForbidden; refused != c.refused {
				t.Errorf("%s %s with %s %s: %d %+v", op[0], op[1], c.name, c.value, status, e)
			}
			if c.refused && (e.Reason != ipam.ReasonBadRequest || e.Code != 1 || e.Hint == "" || e.RequestID == "") {
				t.Errorf("%s %s: %+v", op[0], op[1], e)
			}
		}
	}
}

// A path that is not clean is answered with the envelope, never by a redirect: who follows one does something else
// than was asked for.
func TestNoRedirects(t *testing.T) {
	f := newFixture(t)
	for _, path := range []string{
		"//host/10.0.0.11", "/" + wire.Prefix + "/host/10.0.0.11", wire.Prefix + "//host/10.0.0.11", wire.Prefix + "/host/..", wire.Prefix + "/host/.", wire.Prefix + "/host/../host/10.0.0.11",
		"/./healthz", "/v1//pool/a", "/v1/pool/../ip", "//", "/../", "*",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions} {
			if path == "*" && method != http.MethodOptions {
				continue
			}
			status, e := f.send(t, localRequest(method, path, http.NoBody))
			if status != http.StatusNotFound || e.Reason != ipam.ReasonNotFound || e.Code != 2 || e.RequestID == "" {
				t.Errorf("%s %s: %d %+v", method, path, status, e)
			}
		}
	}
	// none of these is cleaned
	for _, path := range []string{"/healthz", "/", wire.Prefix + "/", wire.Prefix + "/host/", "/v1/pool/", wire.Prefix +
		"/container/%2e%2e"} {
		if status, _ := f.send(t, localRequest(http.MethodGet, path, http.NoBody)); status >= 300 && status < 400 {
			t.Errorf("GET %s: %d", path, status)
		}
	}
}

// A body in another encoding than UTF-8 is not JSON that can be read.
func TestCharset(t *testing.T) {
	f := newFixture(t)
	for ct, want := range map[string]int{
		"application/json; charset=utf-8": 200, "application/json; charset=UTF-8": 200, "application/json;charset=\"utf-8\"": 200, "application/json; x=y": 200,
		"application/json; charset=utf8": 200, "application/json; Charset=UTF8": 200, "APPLICATION/JSON;CHARSET=Utf-8": 200,
		"application/json; charset=utf-16": 415, "application/json; charset=iso-8859-1": 415, "application/json; charset=": 415,
	} {
		r := localRequest(http.MethodPost, wire.Prefix, strings.NewReader("{}"))
		r.Header.Set("Content-Type", ct)
		if status, e := f.send(t, r); status != want || want == 415 && e.Reason != ipam.ReasonBadRequest {
			t.Errorf("%q: %d %+v", ct, status, e)
		}
	}
}

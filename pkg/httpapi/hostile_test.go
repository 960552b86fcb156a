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

// malformed are requests that no route serves, made out of one that it might.
func malformed() map[string]func(*http.Request) {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	all := map[string]func(*http.Request){
		"forwarded by nobody": header(headerForwarded, "x"),
		"another site":        header("Sec-Fetch-Site", "cross-site"),
		"a foreign page":      header("Origin", "http://attacker.example"),
		"a page of nowhere":   header("Origin", "null"),
		"double slash":        func(r *http.Request) { r.URL.Path = "/" + r.URL.Path },
		"dots":                func(r *http.Request) { r.URL.Path += "/../x" },
		"one dot":             func(r *http.Request) { r.URL.Path = "/." + r.URL.Path },
		"no slash":            func(r *http.Request) { r.URL.Path = r.URL.Path[1:] },
		"nothing":             func(r *http.Request) { r.URL.Path = "" },
		"a longer path":       func(r *http.Request) { r.URL.Path += "/x/y/z" },
		"a long path":         func(r *http.Request) { r.URL.Path = "/" + strings.Repeat("x", 60000) },
	}
	for _, method := range []string{"FOO", "PATCH", "PUT", "TRACE", "post", "G\x00T"} {
		all["method "+method] = func(r *http.Request) { r.Method = method }
	}
	for _, v := range []string{"x", "-1", "0", "1.5", "99999999999999999999", "1e3", " "} {
		all["timeout "+v] = header(headerTimeout, v)
	}
	return all
}

// malformedBodies are no JSON, no object, or no JSON that a route understands.
func malformedBodies() []string {
	bodies := []string{
		"", " ", "\x00", "{", "}", "[", "[]", "null", "true", "7", `"x"`, "{}{}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, "{'a':1}", "<xml/>", "host=1", "\xff\xfe{\x00}\x00",
		"\xef\xbb\xbf{}", `{"a":NaN}`, `{"a":01}`, `{"a":"\x01"}`, `{"a":"\u12"}`, strings.Repeat("[", 20000), strings.Repeat(`{"a":`, 20000), `{"a":` + strings.Repeat("1", 70000) + "x",
		`{"host":[],"Pod":[],"ips":{},"name":{},"containerID":{}}`, `{"host":1,"Pod":1,"ips":1,"name":1,"containerID":1}`,
		`{"host":{"a":1},"Pod":"x","ips":"x","name":[1],"containerID":1e999}`,
	}
	return bodies
}

// TestMalformedRequests: whatever is wrong with a request, on whatever route, it is answered, with the envelope or
// galaxy's, a status that the documents name, and a reason that they explain.
func TestMalformedRequests(t *testing.T) {
	f := newFixture(t)
	var reasons []ipam.Reason
	for _, info := range ipam.ReasonTable() {
		reasons = append(reasons, info.Reason)
	}
	statuses := []int{200, 400, 403, 404, 405, 413, 415, 500, 503} // galaxy has 500 for what cannot be decided
	ask := func(what, method, path, body string, change func(*http.Request)) {
		t.Helper()
		r := localRequest(method, path, strings.NewReader(body))
		change(r)
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		var e struct {
			wire.Envelope
			Code *int `json:"code"`
		}
		err := json.Unmarshal(w.Body.Bytes(), &e)
		switch galaxys := err == nil && e.RequestID == ""; {
		case err != nil || e.Code == nil || *e.Code == 0 || e.Message == "" || !slices.Contains(statuses, w.Code):
			t.Errorf("%s: %s %.80s: %d %.300s", what, method, path, w.Code, w.Body)
		case galaxys && (!strings.HasPrefix(path, "/v1/") || *e.Code != w.Code):
			t.Errorf("%s: %s %s: %d %s", what, method, path, w.Code, w.Body)
		case !galaxys && (!slices.Contains(reasons, e.Reason) || *e.Code != codeOf(e.Reason) ||
			e.Reason == ipam.ReasonInternal):
			t.Errorf("%s: %s %.80s: %d %.300s", what, method, path, w.Code, w.Body)
		}
	}
	pages := f.pages()
	for _, op := range samples(f.Service) {
		_, page := pages[op[1]]
		for what, change := range malformed() {
			if page && (strings.HasPrefix(what, "timeout") || strings.HasPrefix(what, "forwarded")) {
				continue // a page looks at no header
			}
			ask(what, op[0], op[1], `{}`, change)
		}
	}
	bodies := []string{"/v1/filter", "/v1/priority"}
	for _, op := range slices.Concat(f.routes(), f.galaxyRoutes()) {
		if op.hasBody {
			bodies = append(bodies, op.path)
		}
	}
	for _, path := range bodies {
		method := http.MethodPost
		path = strings.Replace(path, "{address}", "10.0.0.21", 1)
		if strings.Contains(path, "/ip/") {
			method = http.MethodDelete
		}
		for _, body := range malformedBodies() {
			ask("body "+clip(body), method, path, body, func(*http.Request) {})
		}
		for _, ct := range []string{
			"text/plain", "application/json; charset=utf-16", ";;", "application/jsonx", "multipart/form-data; boundary=x",
		} {
			ask("type "+ct, method, path, `{}`, func(r *http.Request) { r.Header.Set("Content-Type", ct) })
		}
	}
}

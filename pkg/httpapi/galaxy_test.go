package httpapi

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	galaxyrest "github.com/bcsnet/bcsnet/pkg/compat/galaxy/rest"
)

func (f *fixture) ask(method, path, body string, headers ...string) (int, string) {
	w, r := httptest.NewRecorder(), localRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	f.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// What is wrong about a request is said as galaxy says it: the status, and a message.
func TestGalaxyRefuses(t *testing.T) {
	f := newFixture(t)
	large := `{"ips":[{"ip":"` + strings.Repeat("1", maxGalaxyBody) + `"}]}`
	for _, c := range []struct {
		method, path, body string
		status             int
		message            string
	}{
		{"POST", "/v1/ip", ``, 400, "the body is empty; a JSON object is expected"},
		{"POST", "/v1/ip", `{`, 400, "the body is not JSON"},
		{"POST", "/v1/ip", `null`, 400, "the body must be a JSON object, not null"},
		{"POST", "/v1/ip", `[]`, 400, "the body must be a JSON object, not a JSON array"},
		{"POST", "/v1/ip", `{"ips":{}}`, 400, "field ips must be an array, not a JSON object"},
		{"POST", "/v1/ip", `{"ips":[{"ip":5}]}`, 400, "field ips.ip must be a string, not a JSON number"},
		{"POST", "/v1/ip", large, 413, "the body is larger than 8388608 bytes"},
		{"POST", "/v1/pool", `{"name":"a","size":1e99}`, 400, "field size must be a whole number, not a JSON number 1e99"},
		{"POST", "/v1/pool", `{"name":"a","size":99999999999999999999}`, 400, "field size must be a whole number, not a JSON number 99999999999999999999"},
		{"POST", "/v1/pool", `{}`, 400, "pool name is empty"},
		{"GET", "/v1/pool/", ``, 400, "pool name is empty"},
		{"DELETE", "/v1/pool/%20", ``, 400, "pool name is empty"},
		{"GET", "/v1/pool/a%00", ``, 400, `pool name "a\x00" is not a printable text of at most 253 bytes`},
		{"GET", "/v1/ip?sort=x", ``, 400, `sort "x" is not one of ip, ip-numeric, namespace, podname and policy, with asc or desc behind it`},
	} {
		status, text := f.ask(c.method, c.path, c.body)
		var got galaxyrest.Response
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s %s: %s", c.method, c.path, text)
		}
		if diff := cmp.Diff(galaxyrest.Response{Code: c.status, Message: c.message}, got); diff != "" || status != c.status {
			t.Errorf("%s %s %.100s: %d (-want +got):\n%s", c.method, c.path, c.body, status, diff)
		}
	}
	if status, text := f.ask("GET", "/v1/ip", "", headerTimeout, "soon"); status != 400 ||
		!strings.Contains(text, `"code": 400`) {
		t.Errorf("%d %s", status, text)
	}
	f = newFixture(t, notReady)
	if status, text := f.ask("GET", "/v1/ip", ""); status != http.StatusServiceUnavailable ||
		text != "{\n \"code\": 503,\n \"message\": \"not ready: the lists have not come\"\n}\n" {
		t.Errorf("%d %s", status, text)
	}
}

// What does nothing is answered as galaxy does, in its lines, also with parameters that mean nothing.
func TestGalaxyAnswers(t *testing.T) {
	f := newFixture(t)
	const empty = `{
 "last": true,
 "totalElements": 0,
 "totalPages": 0,
 "first": true,
 "numberOfElements": 0,
 "size": 10,
 "number": 0,
 "content": []
}
`
	if status, text := f.ask("GET", "/v1/ip?_=1&page=&appName=nginx", ""); status != 200 || text != empty {
		t.Errorf("%d %s", status, text)
	}
	if status, text := f.ask("POST", "/v1/ip", `{"ips":[]}`); status != 200 ||
		text != "{\n \"code\": 200,\n \"message\": \"\"\n}\n" {
		t.Errorf("%d %s", status, text)
	}
	for path, part := range map[string]string{
		"/apidocs.json": `"path": "/v1"`, "/apidocs.json/v1": `"basePath": "http://127.0.0.1:8090"`,
	} {
		if status, text := f.ask("GET", path, ""); status != 200 || !strings.Contains(text, part) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// TestGalaxyBodies: a body that is short in JSON and long in memory is refused before anything is made of it, and one
// that is announced and does not come takes no room from others.
func TestGalaxyBodies(t *testing.T) {
	f := newFixture(t)
	body := `{"ips":[` + strings.TrimSuffix(strings.Repeat("{},", maxGalaxyBody/4), ",") + `]}`
	const most = 4 * maxGalaxyBody
	var before, after runtime.MemStats
	took := uint64(most + 1)
	for n := 0; n < 5 && took > most; n++ { // others may allocate meanwhile
		runtime.ReadMemStats(&before)
		status, text := f.ask("POST", "/v1/ip", body)
		runtime.ReadMemStats(&after)
		if took = after.TotalAlloc - before.TotalAlloc; status != http.StatusBadRequest ||
			!strings.Contains(text, "items, more than 39996") {
			t.Fatalf("%d %s", status, text)
		}
	}
	if took > most {
		t.Errorf("a body of %d bytes takes %d", len(body), took)
	}
	if !f.limits.memory.arriving.large.TryAcquire(arrivingLarge) {
		t.Error("the room has not come back")
	}
	if status, text := f.ask("POST", "/v1/ip", body); status != http.StatusServiceUnavailable {
		t.Errorf("without room: %d %s", status, text)
	}
}

// TestGalaxyForwards: the leader answers, which alone knows for how long pods are gone.
func TestGalaxyForwards(t *testing.T) {
	for _, r := range (&Service{}).galaxyRoutes() {
		if !r.forward {
			t.Errorf("%s %s is answered by whoever is asked", r.method, r.path)
		}
	}
}

// The document of the API names the server as its reader reached it.
func TestSwaggerNamesTheServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, plainHTTP) // the name is none of this machine
	for want, state := range map[string]*tls.ConnectionState{
		"http://ipam.example:8090": nil, "https://ipam.example:8090": {},
	} {
		r := localRequest("GET", galaxyrest.SwaggerV1, http.NoBody)
		r.Host, r.TLS = "ipam.example:8090", state
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), `"basePath": "`+want+`"`) {
			t.Errorf("%d %.300s, want %s", w.Code, w.Body, want)
		}
	}
}

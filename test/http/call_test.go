package http_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

const prefix = "/netservicecontroller/v1/allocator"

// answer is what came back.
type answer struct {
	Status int
	Header http.Header
	Raw    []byte
	wire.Envelope
	Data json.RawMessage
}

// object is a JSON object as a client without types writes and reads it.
type object = map[string]any

// caller calls one controller and checks all that passes against the OpenAPI document.
type caller struct{ url string }

func (i *instance) caller() caller { return caller{i.URL} }

func allocatorOf(*testing.T) caller { return shared.controller.caller() }

// transport opens a connection per request: nothing stays behind when a controller ends.
var transport = &http.Transport{DisableKeepAlives: true}

// do sends a request and checks it and its answer. The body may be nil, text, or anything that becomes
// JSON. Headers come in pairs.
func (c caller) do(t *testing.T, method, path string, body any, headers ...string) answer {
	t.Helper()
	a, err := c.send(t.Context(), method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// send is do for other goroutines than the test's.
func (c caller) send(ctx context.Context, method, path string, body any, headers ...string) (a answer, err error) {
	var data []byte
	switch b := body.(type) {
	case nil:
	case string:
		data = []byte(b)
	default:
		if data, err = json.Marshal(body); err != nil {
			return a, err
		}
	}
	newRequest := func() (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		if body != nil {
			r.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i < len(headers); i += 2 {
			if r.Header.Del(headers[i]); headers[i+1] != "" {
				r.Header.Set(headers[i], headers[i+1])
			}
		}
		return r, nil
	}
	r, err := newRequest()
	if err != nil {
		return a, err
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if a.Raw, err = io.ReadAll(resp.Body); err != nil {
		return a, err
	}
	a.Status, a.Header = resp.StatusCode, resp.Header
	if r, err = newRequest(); err != nil {
		return a, err
	}
	if err := conforms(r, a); err != nil {
		return a, fmt.Errorf("%s %s %.300s\n%d %s\ndoes not fit the OpenAPI document: %w", method, path, data, a.Status,
			a.Raw, err)
	}
	if len(a.Raw) > 0 && !slices.Contains([]string{"/openapi.json", "/version", "/info"}, path) &&
		a.Header.Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(a.Raw, &a.Envelope); err != nil {
			return a, fmt.Errorf("%s: %w", a.Raw, err)
		}
		a.Data, _ = json.Marshal(a.Envelope.Data)
		if id := a.Header.Get("X-Request-Id"); id != a.RequestID {
			return a, fmt.Errorf("X-Request-Id is %q, request_id %q", id, a.RequestID)
		}
	}
	return a, nil
}

// contract is the OpenAPI document with a mux that finds the operation of a request.
type contract struct {
	doc *openapi3.T
	mux *http.ServeMux
}

var readContract = sync.OnceValues(func() (*contract, error) {
	resp, err := (&http.Client{Transport: transport}).Get(shared.controller.URL + "/openapi.json")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	c := &contract{mux: http.NewServeMux()}
	if c.doc, err = openapi3.NewLoader().LoadFromIoReader(resp.Body); err != nil {
		return nil, err
	}
	for path, item := range c.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			route := &routers.Route{Spec: c.doc, Path: path, PathItem: item, Method: method, Operation: operation}
			c.mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, r *http.Request) {
				params := map[string]string{}
				for _, p := range item.Parameters {
					params[p.Value.Name] = r.PathValue(p.Value.Name)
				}
				w.(*found).input = &openapi3filter.RequestValidationInput{
					Request: r, PathParams: params, Route: route, Options: &openapi3filter.Options{IncludeResponseStatus: true},
				}
			})
		}
	}
	return c, nil
})

// found takes the operation from the mux's handler.
type found struct {
	*httptest.ResponseRecorder
	input *openapi3filter.RequestValidationInput
}

// conforms checks a request and its answer. A request that was refused as wrong may be wrong; whatever
// is outside the document's operations gets a Refusal.
func conforms(r *http.Request, a answer) error {
	c, err := readContract()
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead || r.Method == http.MethodOptions && a.Status == http.StatusNoContent {
		return nil // no body
	}
	f := &found{ResponseRecorder: httptest.NewRecorder()}
	if c.mux.ServeHTTP(f, r); f.input == nil || a.Status == http.StatusMethodNotAllowed {
		return c.isRefusal(a)
	}
	var e wire.Envelope
	_ = json.Unmarshal(a.Raw, &e) // pages are no envelopes
	if e.Code != 1 {
		if err := openapi3filter.ValidateRequest(r.Context(), f.input); err != nil {
			return fmt.Errorf("the request: %w", err)
		}
	}
	err = openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: f.input, Status: a.Status, Header: a.Header,
		Body: io.NopCloser(bytes.NewReader(a.Raw)), Options: f.input.Options,
	})
	if err != nil {
		return fmt.Errorf("the response: %w", err)
	}
	return nil
}

func (c *contract) isRefusal(a answer) error {
	var v any
	if err := json.Unmarshal(a.Raw, &v); err != nil {
		return err
	}
	return c.doc.Components.Schemas["Refusal"].Value.VisitJSON(v, openapi3.EnableJSONSchema2020())
}

// done fails the test unless the request was done, and returns the data as a client reads it.
func (a answer) done(t *testing.T) object {
	t.Helper()
	var data object
	a.doneInto(t, &data)
	return data
}

func (a answer) doneInto(t *testing.T, data any) {
	t.Helper()
	if a.Status != http.StatusOK || a.Code != 0 || !a.Result || a.Reason != "" {
		t.Fatalf("not done: %d %s", a.Status, a.Raw)
	}
	if err := json.Unmarshal(a.Data, data); err != nil {
		t.Fatalf("data of %s: %v", a.Raw, err)
	}
}

// refusal is what a refused request says, without the request_id.
type refusal struct {
	Status, Code          int
	Reason, Message, Hint string
}

func (a answer) refusal() refusal {
	return refusal{a.Status, a.Code, string(a.Reason), a.Message, a.Hint}
}

// refused fails the test unless the answer is this refusal, with data null. An empty hint in want means
// any.
func (a answer) refused(t *testing.T, want refusal) {
	t.Helper()
	got := a.refusal()
	if want.Hint == "" {
		got.Hint = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if a.Result || string(a.Data) != "null" {
		t.Errorf("result is %t and data %s", a.Result, a.Data)
	}
}

// refusedWith fails the test unless the request was refused on its merits, for this reason and in words
// that hold all the parts.
func (a answer) refusedWith(t *testing.T, reason string, parts ...string) {
	t.Helper()
	a.refused(t, refusal{200, 2, reason, a.Message, ""})
	for _, p := range parts {
		if !strings.Contains(a.Message, p) {
			t.Errorf("the message does not say %q: %s", p, a.Message)
		}
	}
}

func getText(ctx context.Context, url string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// newID is a container ID that no other test uses.
func newID() string { return strings.ReplaceAll(uuid.NewString()+uuid.NewString(), "-", "") }

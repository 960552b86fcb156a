package client

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// replica is a server of the test's own. It counts what it is asked.
type replica struct {
	*httptest.Server
	asked atomic.Int32
}

func (r *replica) url(t *testing.T) *url.URL {
	t.Helper()
	u, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func serve(t *testing.T, answer http.HandlerFunc) *replica {
	t.Helper()
	r := &replica{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked.Add(1)
		answer(w, q)
	}))
	t.Cleanup(r.Close)
	return r
}

// say answers with an envelope, as the allocator does.
func say(w http.ResponseWriter, q *http.Request, status, code int, reason ipam.Reason, data string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"code":%d,"message":"m","result":%t,"data":%s,"request_id":%q,"reason":%q}`, code, code == 0, data,
		q.Header.Get(headerID), reason)
}

func well(w http.ResponseWriter, q *http.Request) { say(w, q, http.StatusOK, 0, "", `"data"`) }

func refusing(status int, reason ipam.Reason) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) { say(w, q, status, 2, reason, "null") }
}

// silent takes a request and does not answer it.
func silent(_ http.ResponseWriter, q *http.Request) {
	_, _ = io.Copy(io.Discard, q.Body) // only then the server sees that the client has gone
	<-q.Context().Done()
}

// gone returns the URL of a replica that takes no connection.
func gone(t *testing.T) *url.URL {
	t.Helper()
	r := serve(t, well)
	r.Close()
	return r.url(t)
}

func clientOf(replicas ...*url.URL) *Client {
	return &Client{Access: func() (Access, error) { return Access{Replicas: replicas}, nil }, Now: time.Now}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	t.Cleanup(stop)
	return ctx
}

// question returns a call whose data has to be "data".
func question() Call {
	return Call{
		Method: http.MethodPost, Path: "/p", Body: map[string]string{"a": "b"}, RequestID: "r1",
		Query: url.Values{"q": {"1 2"}},
		Accept: func(data json.RawMessage) error {
			if string(data) != `"data"` {
				return fmt.Errorf("data %s", data)
			}
			return nil
		},
	}
}

func TestRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	r := serve(t, func(w http.ResponseWriter, q *http.Request) {
		got = q
		body, _ = io.ReadAll(q.Body)
		well(w, q)
	})
	c := clientOf(r.url(t))
	access := Access{Replicas: []*url.URL{r.url(t)}, Token: "secret"}
	c.Access = func() (Access, error) { return access, nil }
	if err := c.Do(within(t, time.Minute), question()); err != nil {
		t.Fatal(err)
	}
	if got.URL.String() != "/p?q=1+2" || string(body) != `{"a":"b"}` || got.Header.Get(headerID) != "r1" {
		t.Errorf("asked %s with %s, %v", got.URL, body, got.Header)
	}
	if v := got.Header.Get("Authorization"); v != "" {
		t.Errorf("the token went over plain HTTP: %q", v)
	}
	// A try has 8 s, of which the replica may use all but a margin.
	var ms int
	if _, err := fmt.Sscan(got.Header.Get(headerTimeout), &ms); err != nil || ms <= 0 || ms > 7800 {
		t.Errorf("%s = %q", headerTimeout, got.Header.Get(headerTimeout))
	}
	if c.Tries != 1 || c.Replica != r.URL {
		t.Errorf("%d tries, %s", c.Tries, c.Replica)
	}
}

// TestFailover has replicas that do not answer before one that does, whichever is asked first.
func TestFailover(t *testing.T) {
	a := serve(t, well)
	for range 8 { // the order begins anywhere
		c := clientOf(gone(t), a.url(t), gone(t))
		if err := c.Do(within(t, time.Minute), question()); err != nil {
			t.Error(err)
		}
	}
	b := serve(t, well)
	c := clientOf(a.url(t), b.url(t))
	c.Preferred = b.URL
	a.asked.Store(0)
	if err := c.Do(within(t, time.Minute), question()); err != nil || a.asked.Load() != 0 {
		t.Errorf("%v; the other was asked %d times", err, a.asked.Load())
	}
}

// TestForeign has answers that are none to the question. The next replica is asked; alone, the call ends unanswered.
func TestForeign(t *testing.T) {
	text := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); fmt.Fprint(w, text) }
	}
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		cut     bool
		foreign bool
	}{
		"a web page":      {answer: text(200, "<html>welcome</html>"), foreign: true},
		"nothing":         {answer: text(200, ""), foreign: true},
		"another object":  {answer: text(200, `{"status":"ok"}`), foreign: true},
		"a list":          {answer: text(200, `[]`), foreign: true},
		"no page":         {answer: text(404, "404 page not found"), foreign: true},
		"a gateway's 502": {answer: text(502, "bad gateway"), foreign: true},
		"another request": {answer: text(200, `{"code":0,"result":true,"data":"data","request_id":"r2"}`), foreign: true},
		"no code":         {answer: text(200, `{"result":true,"data":"data","request_id":"r1"}`), foreign: true},
		"code and result": {answer: text(200, `{"code":2,"result":true,"data":"data","request_id":"r1"}`), foreign: true},
		"201":             {answer: text(201, `{"code":0,"result":true,"data":"data","request_id":"r1"}`), foreign: true},
		"other data": {answer: func(w http.ResponseWriter, q *http.Request) { say(w, q, 200, 0, "", "7") },
			foreign: true},
		"too much": {answer: text(200, strings.Repeat(" ", maxAnswer+1)), foreign: true},
		"a redirect": {answer: func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, "/other",
				http.StatusFound)
		}, foreign: true},
		"cut off": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"code":0`)
		}},
		"a broken line":    {answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"JSON that is cut": {answer: text(200, `{"code":0,"result":true`), foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			bad, good := serve(t, c.answer), serve(t, well)
			one := clientOf(bad.url(t), good.url(t))
			one.Preferred = bad.URL
			if err := one.Do(within(t, time.Minute), question()); err != nil || one.Replica != good.URL ||
				bad.asked.Load() == 0 {
				t.Errorf("%v by %s, after %d questions at the first", err, one.Replica, bad.asked.Load())
			}
			alone := clientOf(bad.url(t))
			err := alone.Do(within(t, 150*time.Millisecond), question())
			if _, ok := errors.AsType[*Unanswered](err); !ok || errors.Is(err, ErrForeign) != c.foreign ||
				alone.Replica != "" {
				t.Errorf("alone: %v", err)
			}
			if !strings.Contains(err.Error(), bad.URL) {
				t.Errorf("%v does not name the replica", err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		reason ipam.Reason
		once   bool
		tries  int
		retry  bool
	}{
		"for good":                 {reason: ipam.ReasonHostNotInPool, tries: 1},
		"can pass":                 {reason: ipam.ReasonAddressInUse, tries: 3, retry: true},
		"can pass, asked once":     {reason: ipam.ReasonAddressInUse, once: true, tries: 1, retry: true},
		"a newer allocator's word": {reason: "NotYetKnown", once: true, tries: 1, retry: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, refusing(http.StatusOK, c.reason))
			call := question()
			call.Once = c.once
			err := clientOf(r.url(t)).Do(within(t, time.Minute), call)
			refused, ok := errors.AsType[*Refusal](err)
			if !ok || refused.Reason != c.reason || refused.Retry != c.retry || int(r.asked.Load()) != c.tries {
				t.Errorf("%v after %d questions", err, r.asked.Load())
			}
		})
	}
}

// TestRefusalPasses has a refusal that passes while it is asked again.
func TestRefusalPasses(t *testing.T) {
	var r *replica
	r = serve(t, func(w http.ResponseWriter, q *http.Request) {
		if r.asked.Load() < 3 {
			refusing(http.StatusOK, ipam.ReasonAddressInUse)(w, q)
			return
		}
		well(w, q)
	})
	if err := clientOf(r.url(t)).Do(within(t, time.Minute), question()); err != nil {
		t.Error(err)
	}
}

// TestUnavailable has a replica that wants to be asked later: the others may be asked at once, but for an overload,
// which is that of all of them, and a node that has asked too often.
func TestUnavailable(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		reason ipam.Reason
		passes bool
	}{
		"not ready":         {http.StatusServiceUnavailable, ipam.ReasonUnavailable, true},
		"overloaded":        {http.StatusServiceUnavailable, ipam.ReasonOverloaded, false},
		"too many requests": {http.StatusTooManyRequests, ipam.ReasonTooManyRequests, false},
	} {
		t.Run(name, func(t *testing.T) {
			bad := serve(t, func(w http.ResponseWriter, q *http.Request) {
				w.Header().Set("Retry-After", "60")
				refusing(c.status, c.reason)(w, q)
			})
			good := serve(t, well)
			one := clientOf(bad.url(t), good.url(t))
			one.Preferred = bad.URL
			err := one.Do(within(t, 20*time.Second), question())
			if (err == nil) != c.passes || bad.asked.Load() != 1 {
				t.Errorf("%v after %d questions at the first", err, bad.asked.Load())
			}
			if refused, ok := errors.AsType[*Refusal](err); !c.passes && (!ok || refused.Reason != c.reason) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestRetryAfter has a replica that wants to be asked in a second, and is not asked before. The call goes on until it
// is answered.
func TestRetryAfter(t *testing.T) {
	for reason, status := range map[ipam.Reason]int{
		ipam.ReasonOverloaded: http.StatusServiceUnavailable, ipam.ReasonTooManyRequests: http.StatusTooManyRequests,
	} {
		var r *replica
		var first, second time.Time
		r = serve(t, func(w http.ResponseWriter, q *http.Request) {
			if r.asked.Load() == 1 {
				first = time.Now()
				w.Header().Set("Retry-After", "1")
				refusing(status, reason)(w, q)
				return
			}
			second = time.Now()
			well(w, q)
		})
		if err := clientOf(r.url(t)).Do(within(t, time.Minute), question()); err != nil ||
			second.Sub(first) < time.Second {
			t.Errorf("%s: %v, asked again after %v", reason, err, second.Sub(first))
		}
	}
}

// TestSilent has a replica that takes requests and does not answer, until the time is over.
func TestSilent(t *testing.T) {
	r := serve(t, silent)
	err := clientOf(r.url(t)).Do(within(t, 100*time.Millisecond), question())
	if _, ok := errors.AsType[*Unanswered](err); !ok || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestNoReplica(t *testing.T) {
	if err := clientOf().Do(within(t, time.Minute), question()); err == nil || !strings.Contains(err.Error(),
		"no replica") {
		t.Errorf("%v", err)
	}
	broken := &Client{Access: func() (Access, error) { return Access{}, errors.New("broken") }, Now: time.Now}
	if err := broken.Do(within(t, time.Minute), question()); err == nil || err.Error() != "broken" {
		t.Errorf("%v", err)
	}
}

// secure is a replica over https, and the directory of a node that knows its CA.
func secure(t *testing.T, answer http.HandlerFunc) (r *replica, dir string) {
	t.Helper()
	r = &replica{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked.Add(1)
		answer(w, q)
	}))
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.StartTLS()
	t.Cleanup(r.Close)
	dir = t.TempDir()
	write(t, dir, caFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})))
	return r, dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func nodeClient(t *testing.T, dir, serverName string, replicas ...*url.URL) *Client {
	t.Helper()
	return &Client{Now: time.Now, Access: func() (Access, error) {
		files, err := ReadFiles(dir)
		a, wrong := files.Access(replicas, serverName)
		return a, errors.Join(err, wrong)
	}}
}

// TestTokenExpires has a token that is taken no more, and another one in its file while the call goes on.
func TestTokenExpires(t *testing.T) {
	var dir string
	r, dir := secure(t, func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "Bearer new" {
			write(t, dir, tokenFile, "new\n")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		well(w, q)
	})
	write(t, dir, tokenFile, "old\n")
	if err := nodeClient(t, dir, "example.com", r.url(t)).Do(within(t, time.Minute), question()); err != nil ||
		r.asked.Load() != 2 {
		t.Errorf("%v after %d questions", err, r.asked.Load())
	}
	refused, dir := secure(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	err := nodeClient(t, dir, "example.com", refused.url(t)).Do(within(t, 200*time.Millisecond), question())
	if !errors.Is(err, ErrToken) {
		t.Errorf("%v", err)
	}
}

// TestCertificates has replicas that are others than the node's CA and serverName say.
func TestCertificates(t *testing.T) {
	r, dir := secure(t, well)
	err := nodeClient(t, dir, "another.example", r.url(t)).Do(within(t, 200*time.Millisecond), question())
	if _, ok := errors.AsType[x509.HostnameError](err); !ok {
		t.Errorf("another name: %v", err)
	}
	write(t, dir, caFile, "no certificate")
	if err := nodeClient(t, dir, "example.com", r.url(t)).Do(within(t, time.Minute), question()); err == nil ||
		!strings.Contains(err.Error(), caFile) {
		t.Errorf("a damaged CA: %v", err)
	}
	if err := nodeClient(t, t.TempDir(), "example.com", r.url(t)).Do(within(t, time.Minute), question()); err == nil ||
		!strings.Contains(err.Error(), caFile) {
		t.Errorf("no CA: %v", err)
	}
	if r.asked.Load() != 0 {
		t.Errorf("it was asked %d times", r.asked.Load())
	}
}

// TestConfigurationChanges has another replica in the configuration while a call goes on.
func TestConfigurationChanges(t *testing.T) {
	good := serve(t, well)
	reads := 0
	c := &Client{Now: time.Now, Access: func() (Access, error) {
		if reads++; reads < 3 {
			return Access{Replicas: []*url.URL{gone(t)}}, nil
		}
		return Access{Replicas: []*url.URL{good.url(t)}}, nil
	}}
	if err := c.Do(within(t, time.Minute), question()); err != nil || c.Replica != good.URL {
		t.Errorf("%v, %s", err, c.Replica)
	}
}

func TestPing(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		fails  bool
	}{
		"ready": {answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }},
		"not ready": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, "not ready")
		}, fails: true},
		"a web page": {answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "<html>") }, fails: true},
		"silent":     {answer: silent, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t, c.answer)
			one := clientOf(r.url(t))
			if err := one.Ping(within(t, 300*time.Millisecond)); (err != nil) != c.fails ||
				(one.Replica == "") != c.fails {
				t.Errorf("%v, %q", err, one.Replica)
			}
			ready := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
			two := clientOf(r.url(t), ready.url(t))
			two.Preferred = r.URL
			if err := two.Ping(within(t, 600*time.Millisecond)); err != nil {
				t.Errorf("with another one that is: %v", err)
			}
		})
	}
}

// TestFiles has files of the node that cannot be what they are to be.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	if files, err := ReadFiles(dir); files.Config != nil || err != nil {
		t.Errorf("none: %+v, %v", files, err)
	}
	if err := os.Mkdir(filepath.Join(dir, tokenFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFiles(dir); err == nil || !strings.Contains(err.Error(), tokenFile) {
		t.Errorf("a directory: %v", err)
	}
	write(t, dir, nodeFile, strings.Repeat(" ", maxFile+1))
	if _, err := ReadFiles(dir); err == nil || !strings.Contains(err.Error(), "octets") {
		t.Errorf("too large: %v", err)
	}
}

// FuzzAnswer: whatever a server answers, it is a success with the envelope of this very request, a refusal, or none.
func FuzzAnswer(f *testing.F) {
	f.Add(200, `{"code":0,"result":true,"request_id":"r1","data":"data"}`, "")
	f.Add(429, `{"code":2,"result":false,"request_id":"r1","reason":"TooManyRequests"}`, "99999999")
	f.Add(503, `{"code":2,"result":false,"request_id":"r1","reason":"Overloaded"}`, "-1")
	f.Add(200, `{"code":0,"result":true,"request_id":"r2","data":"data"}`, "1")
	f.Fuzz(func(t *testing.T, status int, body, later string) {
		o := question().read(&http.Response{
			StatusCode: status, Header: http.Header{"Retry-After": {later}},
			Body: io.NopCloser(strings.NewReader(body)),
		})
		var e envelope
		if o.failed == nil && o.refused == nil && (json.Unmarshal([]byte(body), &e) != nil || status != http.StatusOK ||
			*e.Code != 0 || e.RequestID != "r1" || string(e.Data) != `"data"`) {
			t.Errorf("HTTP %d with %q is taken for a success", status, body)
		}
		if o.wait < 0 || o.wait > 1<<16*time.Second {
			t.Errorf("%q has it wait for %s", later, o.wait)
		}
	})
}

// A request shows the last receipt, and the one that an answer has replaces it. A refusal's does not, nor one that is
// too long.
func TestReceipt(t *testing.T) {
	shown, given, answer := "", "second", http.HandlerFunc(well)
	r := serve(t, func(w http.ResponseWriter, q *http.Request) {
		shown = q.Header.Get(headerReceipt)
		w.Header().Set(headerReceipt, given)
		answer(w, q)
	})
	c := clientOf(r.url(t))
	c.Receipt = "first"
	ask := func(wantShown, wantKept string) {
		t.Helper()
		_ = c.Do(within(t, time.Minute), question()) // a refusal is an error
		if shown != wantShown || c.Receipt != wantKept {
			t.Errorf("shown is %q, kept %q; want %q and %q", shown, c.Receipt, wantShown, wantKept)
		}
	}
	ask("first", "second")
	given = ""
	ask("second", "second")
	given = strings.Repeat("x", maxReceipt+1)
	ask("second", "second")
	given, answer = "third", refusing(http.StatusOK, ipam.ReasonPoolExhausted)
	ask("second", "second")
}

package store

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// versioned is an API server that has one version, and whose watches run until they are ended.
type versioned struct {
	version int
	watches int
}

func (s *versioned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(
			fmt.Sprintf(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%d"}}`,
				s.version)))}, nil
	}
	s.watches++
	events, out := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = out.CloseWithError(r.Context().Err()) }) // nothing waits for it
	return &http.Response{StatusCode: http.StatusOK, Body: events}, nil
}

// What one watch notices counts for all: one that begins when the versions have caught up again would find nothing
// wrong.
func TestRestoreThatOneWatchNotices(t *testing.T) {
	server, restores := &versioned{version: 100}, NewRestores()
	client := restores.Wrap(server)
	watch := func(path string, params ...string) (status int, ended func() bool) {
		t.Helper()
		q := url.Values{"watch": {"true"}}
		for i := 0; i < len(params); i += 2 {
			q.Set(params[i], params[i+1])
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1"+path+"?"+q.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = io.Copy(io.Discard, resp.Body) // until it is ended
			_ = resp.Body.Close()                 // nothing is left of it
		}()
		return resp.StatusCode, func() bool {
			select {
			case <-over:
				return true
			default:
				return false
			}
		}
	}
	begins := func(path string, params ...string) (ended func() bool) {
		t.Helper()
		status, ended := watch(path, params...)
		if status != http.StatusOK {
			t.Fatalf("the watch of %s %v is answered with %d", path, params, status)
		}
		return ended
	}
	expires := func(path string, params ...string) {
		t.Helper()
		if status, _ := watch(path, params...); status != http.StatusGone {
			t.Fatalf("the watch of %s %v is answered with %d", path, params, status)
		}
	}
	const pods, nodes, leases = "/api/v1/pods", "/api/v1/nodes", "/apis/x/v1/bcsnetips"
	ends := func(what string, ended func() bool) {
		t.Helper()
		controlplane.Until(t, "the watch of "+what+" is ended", ended)
	}
	ofPods, ofOne := begins(pods, "resourceVersion", "90"),
		begins(pods, "resourceVersion", "90", "fieldSelector", "metadata.name=a")
	ofNodes := begins(nodes, "resourceVersion", "100")

	server.version = 95 // put back
	expires(leases, "resourceVersion", "99")
	ends("pods", ofPods)
	ends("one pod", ofOne)
	ends("nodes", ofNodes)
	server.version = 200 // caught up
	expires(pods, "resourceVersion", "90")
	expires(pods, "resourceVersion", "90", "fieldSelector", "metadata.name=a")
	begins(nodes, "resourceVersion", "90", "sendInitialEvents", "true") // which tells the whole state
	ofPods, ofNodes = begins(pods, "resourceVersion", "199"), begins(nodes, "resourceVersion", "199")
	ofLeases := begins(leases, "resourceVersion", "199")

	restores.Noticed("bcsnetips")
	ends("pods", ofPods)
	ends("nodes", ofNodes)
	expires(pods, "resourceVersion", "199")
	begins(pods, "resourceVersion", "199")
	begins(nodes) // which tells the whole state, too
	begins(leases, "resourceVersion", "199")
	if ofLeases() {
		t.Error("the watch of who noticed is ended")
	}
	restores.Noticed("pods")
	ends("leases", ofLeases)
	if server.watches == 0 {
		t.Error("no watch has come to the API server")
	}
}

// A watch that ended before its time, or did not begin, lists before it goes on: the API server was away. One that
// ended in order, or because whoever watched wanted it, goes on where it was.
func TestListsAfterTheAPIServerWasAway(t *testing.T) {
	ok := func(body string) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
	const list = `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"10"}}`
	code := func(n int) (*http.Response, error) {
		return &http.Response{StatusCode: n, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	}
	away := func() (*http.Response, error) { return nil, io.EOF }
	for name, tc := range map[string]struct {
		look, watch func() (*http.Response, error)
		seconds     string
		status      int
		// next is the version of the next watch, in place of the same.
		next  string
		lists bool
	}{
		"it ended before its time": {seconds: "300", status: 200, lists: true},
		"it has no time":           {status: 200, lists: true},
		"it ended in order":        {seconds: "0", status: 200},
		"its connection broke then": {seconds: "0", status: 200, lists: true, watch: func() (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))}, nil
		}},
		"nobody answers the look":      {look: away, lists: true},
		"nobody answers":               {watch: away, lists: true},
		"it has listed since":          {watch: away, next: "10"},
		"it ended, whatever came":      {seconds: "300", status: 200, next: "10", lists: true},
		"a proxy without a server":     {watch: func() (*http.Response, error) { return code(502) }, status: 502, lists: true},
		"the look is refused":          {look: func() (*http.Response, error) { return code(403) }, status: 403},
		"the watch is told to go away": {watch: func() (*http.Response, error) { return code(429) }, status: 429},
	} {
		t.Run(name, func(t *testing.T) {
			watches, from := 0, "9"
			server := roundTripper(func(r *http.Request) (*http.Response, error) {
				if q := r.URL.Query(); q.Get("fieldSelector") != "metadata.name=a" || q.Get("labelSelector") != "b=c" {
					t.Errorf("asked for %v", q) // which a right for that one may not allow
				}
				switch {
				case r.URL.Query().Get("watch") == "" && tc.look != nil:
					return tc.look()
				case r.URL.Query().Get("watch") == "":
					return ok(list)
				}
				if watches++; tc.watch != nil {
					return tc.watch()
				}
				return ok("")
			})
			client := NewRestores().Wrap(server)
			begin := func() (int, error) {
				q := url.Values{
					"watch": {"1"}, "resourceVersion": {from}, "fieldSelector": {"metadata.name=a"}, "labelSelector": {"b=c"},
				}
				if tc.seconds != "" {
					q.Set("timeoutSeconds", tc.seconds)
				}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1/api/v1/pods?"+q.Encode(), nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.RoundTrip(r)
				if err != nil {
					return 0, err
				}
				_, _ = io.Copy(io.Discard, resp.Body) // the end of the stream is what counts
				return resp.StatusCode, resp.Body.Close()
			}
			if status, err := begin(); status != tc.status || (err != nil) != (tc.status == 0) {
				t.Fatalf("%d, %v, want %d", status, err, tc.status)
			}
			if tc.status == 403 && watches > 0 {
				t.Error("it has begun without a look")
			}
			tc.look, tc.watch = nil, nil
			from = cmp.Or(tc.next, from)
			if status, err := begin(); err != nil || (status == http.StatusGone) != tc.lists {
				t.Errorf("the next one: %d, %v, to list first: %v", status, err, tc.lists)
			}
			if tc.lists {
				tc.seconds = "0"
				if status, err := begin(); status != http.StatusOK {
					t.Errorf("after the list: %d, %v", status, err)
				}
			}
		})
	}
}

// Watches of the same objects, whole and as metadata, are two: the gap of one is not listed for by the other.
func TestTwoWatchesOfTheSame(t *testing.T) {
	client, ctx := NewRestores(), t.Context()
	watch := client.Wrap(roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"metadata":{}}`))}, nil
	}))
	for round, want := range []int{http.StatusOK, http.StatusGone, http.StatusOK} {
		for _, as := range []string{"application/json", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"} {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1/api/v1/namespaces?watch=1&resourceVersion=9", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", as)
			resp, err := watch.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != want {
				t.Errorf("round %d, %s: %d, want %d", round, as, resp.StatusCode, want)
			}
			_, _ = io.Copy(io.Discard, resp.Body) // until it ends, before its time
			_ = resp.Body.Close()                 // nothing is left of it
		}
	}
}

// A watch that ended at its time goes on where it was, unless nobody watched for so long that the API server may have
// gone and come back with another store, as while the process was stopped.
func TestPauseAfterAWatch(t *testing.T) {
	for name, tc := range map[string]struct {
		pause time.Duration
		want  int
	}{"at once": {0, http.StatusOK}, "after a pause": {longestPause + time.Second, http.StatusGone}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				watch := NewRestores().Wrap(roundTripper(func(r *http.Request) (*http.Response, error) {
					var body io.Reader = strings.NewReader(`{"metadata":{"resourceVersion":"20"}}`)
					if r.URL.Query().Get("watch") != "" && r.URL.Query().Get("limit") == "" {
						body = readerFunc(func([]byte) (int, error) {
							time.Sleep(300 * time.Second) //nolint:forbidigo // of the time in this bubble
							return 0, io.EOF
						})
					}
					return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, nil
				}))
				begin := func() *http.Response {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
						"https://127.0.0.1/api/v1/pods?watch=1&resourceVersion=9&timeoutSeconds=300", nil)
					if err != nil {
						t.Fatal(err)
					}
					resp, err := watch.RoundTrip(r)
					if err != nil {
						t.Fatal(err)
					}
					return resp
				}
				first := begin()
				_, _ = io.Copy(io.Discard, first.Body)
				_ = first.Body.Close()
				time.Sleep(tc.pause) //nolint:forbidigo // of the time in this bubble
				again := begin()
				defer again.Body.Close()
				if again.StatusCode != tc.want {
					t.Errorf("the next watch: %d, want %d", again.StatusCode, tc.want)
				}
			})
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A restore that another watch noticed counts for the leases, too, whatever the versions say.
func TestRestoreThatTheFeedIsToldOf(t *testing.T) {
	cfg, restores, addr := config(t, nil), NewRestores(), subnet()
	cfg.Wrap(restores.Wrap)
	c := connectTo(t, cfg, index.New())
	f := NewFeed(c)
	var others atomic.Int32
	f.OnRestore(func() { others.Add(1); restores.Noticed("bcsnetips") })
	start(t, f)
	controlplane.Until(t, "the feed watches", f.Watching)
	l := confirmed(t, c, available(addr(1)))
	restores.Noticed("pods")
	controlplane.Until(t, "the leases are listed anew", func() bool { return f.Restarts() == 1 })
	if got, err := c.Get(t.Context(), l.Addr); err != nil || got.Epoch != 1 {
		t.Errorf("read in epoch %d, %v", got.Epoch, err)
	}
	again := confirmed(t, c, available(addr(2)))
	if f.Restarts() != 1 || others.Load() != 1 || again.Version <= l.Version {
		t.Errorf("%d restores, others are told of %d", f.Restarts(), others.Load())
	}
}

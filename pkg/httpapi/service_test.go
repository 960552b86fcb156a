package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	galaxyrest "github.com/bcsnet/bcsnet/pkg/compat/galaxy/rest"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/replica"
	"github.com/bcsnet/bcsnet/pkg/scheduling"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// fixture is a service without an API server behind it: good for all that is decided before that is asked.
type fixture struct {
	*Service
	Options
	registry *prometheus.Registry
	log      bytes.Buffer
	handler  http.Handler
}

// newFixture makes a service with options that change may change.
func newFixture(t testing.TB, change ...func(*Options)) *fixture {
	t.Helper()
	f := &fixture{registry: prometheus.NewRegistry()}
	leases, err := store.New(&rest.Config{Host: "127.0.0.1:1"}, nil, store.NewClock(nil))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(&f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	peers, index := &fakePeers{self: replica.New("here", "")}, index.New()
	f.Options = Options{
		Allocator: allocator.New(index, leases, nil, nil, gone.Rule{}, log),
		Peers:     peers, Forwarder: NewForwarder(peers, nil, f.registry, log),
		Galaxy: &galaxyrest.Service{Index: index}, Scheduling: &scheduling.Extender{},
		Index: index, Leases: leases, Ready: func() error { return nil }, Metrics: NewMetrics(f.registry),
		Gatherer: f.registry,
		Version:  func(context.Context) Versions { return Versions{Version: "v1", Go: "go1"} },
		Log:      log,
	}
	for _, c := range change {
		c(&f.Options)
	}
	if f.Service, err = New(f.Options); err != nil {
		t.Fatal(err)
	}
	f.handler = f.Handler()
	return f
}

// withoutAllocator has what gets to the allocator panic, which is answered with Internal.
func withoutAllocator(o *Options) { o.Allocator = &allocator.Allocator{} }

// notReady has nothing decided.
func notReady(o *Options) { o.Ready = func() error { return errors.New("the lists have not come") } }

// knows has a Gate say who calls.
func knows(g Gate) func(*Options) { return func(o *Options) { o.Gate = g } }

func plainHTTP(o *Options) { o.PlainHTTP = true }

// No service is made without what it needs.
func TestOptions(t *testing.T) {
	good := newFixture(t).Options
	for name, change := range map[string]func(*Options){
		"the option Index": func(o *Options) { o.Index = nil }, "the option Ready": func(o *Options) { o.Ready = nil },
		"the option Log": func(o *Options) { o.Log = nil },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func (f *fixture) do(t *testing.T, method, path, body string) (int, wire.Envelope) {
	t.Helper()
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, localRequest(method, path, strings.NewReader(body)))
	var e wire.Envelope
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
	}
	return w.Code, e
}

// A handler that panics answers 500 with an envelope, and the log has the rest under the request's ID.
func TestPanicInAHandler(t *testing.T) {
	f := newFixture(t, withoutAllocator)
	status, e := f.do(t, "DELETE", wire.Prefix, `{"host":"10.0.0.11","containerID":"c","podName":"p","podNamespace":"n"}`)
	want := wire.Envelope{Code: 2, Reason: ipam.ReasonInternal, RequestID: e.RequestID,
		Message: "internal error; the controller's log has more under request_id " + e.RequestID}
	if diff := cmp.Diff(want, e); diff != "" || status != http.StatusInternalServerError {
		t.Errorf("%d (-want +got):\n%s", status, diff)
	}
	if log := f.log.String(); !strings.Contains(log, e.RequestID) || !strings.Contains(log, "stack=") ||
		!strings.Contains(log, "level=ERROR") {
		t.Errorf("the log has no stack under the request's ID: %s", log)
	}
}

// The answer names the host that holds the address, never none.
func TestHostOfAnAnswer(t *testing.T) {
	asks, holds := netip.MustParseAddr("10.0.0.11"), netip.MustParseAddr("10.0.0.12")
	r := allocator.Request{Host: asks}
	held := allocator.Address{Lease: lease.Lease{Holder: lease.Holder{Host: holds}}}
	if got := hostOf(held, r); got != holds {
		t.Errorf("held on a host: got %s", got)
	}
	if got := hostOf(allocator.Address{}, r); got != asks {
		t.Errorf("held on no host: got %s", got)
	}
}

func TestErrorsWithoutAReason(t *testing.T) {
	err := fmt.Errorf("outer: %w", errors.New("inner"))
	if got := asRefusal(err); (envelopeCodec{}).status(got) != http.StatusInternalServerError ||
		got.Reason != ipam.ReasonInternal || got.Message != "outer: inner" {
		t.Errorf("%d %+v", envelopeCodec{}.status(got), got)
	}
	wrapped := fmt.Errorf("releasing: %w", ipam.Refuse(ipam.ReasonUnavailable, "away"))
	if got := asRefusal(wrapped); (envelopeCodec{}).status(got) != http.StatusServiceUnavailable || got.Message != "away" {
		t.Errorf("%d %+v", envelopeCodec{}.status(got), got)
	}
}

// Fields that nobody knows stand in the log at the first time, all of them; later only for who debugs.
func TestUnknownFieldsAreLoggedOnce(t *testing.T) {
	f := newFixture(t)
	for range 3 {
		f.do(t, "POST", wire.Prefix, `{"b":1,"a":[2],"HOST":"","host":""}`)
	}
	f.do(t, "POST", wire.Prefix, `{"c":1,"a":1}`)
	var levels []string
	for line := range strings.Lines(f.log.String()) {
		if !strings.Contains(line, "not known here") {
			continue
		}
		_, line, _ = strings.Cut(line, "level=")
		level, _, _ := strings.Cut(line, " ")
		_, line, _ = strings.Cut(line, "fields=")
		fields, _, _ := strings.Cut(line, " method")
		levels = append(levels, level+" "+fields)
	}
	want := []string{`INFO "[a b]"`, `DEBUG "[a b]"`, `DEBUG "[a b]"`, `INFO "[a c]"`}
	if diff := cmp.Diff(want, levels); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	// Whoever makes names up fills neither the memory nor, at the usual level, the log.
	for i := range 1000 {
		f.do(t, "POST", wire.Prefix, fmt.Sprintf(`{"made-up-%d":1}`, i))
	}
	if n := len(f.bodies.unknown.seen); n != maxUnknown {
		t.Errorf("%d names are kept, want %d", n, maxUnknown)
	}
}

// Whatever callers send, metrics have the same few series.
func TestMetricLabelsAreBounded(t *testing.T) {
	b := newFixture(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				for _, r := range [][2]string{
					{fmt.Sprintf("M%d-%d", i, j), wire.Prefix}, {"GET", fmt.Sprintf("/path-%d-%d", i, j)}, {"GET", fmt.Sprintf("%s/host/x%d-%d", wire.Prefix, i, j)},
					{"POST", wire.Prefix}, {"GET", fmt.Sprintf("%s?q%d-%d=1", wire.Prefix, i, j)}, {"GET", wire.Prefix},
				} {
					b.handler.ServeHTTP(httptest.NewRecorder(), localRequest(r[0], r[1], strings.NewReader("x")))
				}
			}
		})
	}
	all.Wait()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				key += " " + l.GetValue()
			}
			got[key] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{
		"bcsnet_requests_total none BadRequest": 400, "bcsnet_requests_total none NotFound": 400,
		"bcsnet_requests_total inspectHost BadRequest": 400, "bcsnet_requests_total allocate BadRequest": 400,
		"bcsnet_requests_total list BadRequest": 400, "bcsnet_requests_total list ": 400,
		"bcsnet_request_duration_seconds inspectHost": 400, "bcsnet_request_duration_seconds allocate": 400, "bcsnet_request_duration_seconds list": 800,
	}
	for _, stage := range store.Stages() { // all are shown from the beginning
		want["bcsnet_stage_duration_seconds "+string(stage)] = 0
	}
	for _, outcome := range []string{"Quarantined", "Released", "Kept"} {
		want["bcsnet_address_conflicts_total "+outcome] = 0
	}
	for _, result := range []string{"answered", "refused", "unreachable", "silent", "avoided"} { // nothing was forwarded
		want["bcsnet_forwarded_total "+result] = 0
	}
	for _, outcome := range []string{"Released", "Running", "Waiting"} {
		want["bcsnet_gc_unlisted_total "+outcome] = 0
	}
	for _, kind := range rateKinds() { // nobody has sent too many
		want["bcsnet_rate_limited_total "+string(kind)] = 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// What is malformed is said to be so also while nothing can be decided.
func TestNotReady(t *testing.T) {
	f := newFixture(t, notReady)
	for _, c := range []struct {
		method, path, body, message string
		status                      int
	}{
		{"POST", wire.Prefix, `{}`, "not ready: the lists have not come", 503},
		{"GET", wire.Prefix, ``, "not ready: the lists have not come", 503},
		{"POST", wire.Prefix, `{`, "the body is not JSON", 400},
		{"GET", wire.Prefix + "?x=1", ``, `query parameter "x" is not known here`, 200},
		{"GET", "/nowhere", ``, "there is no /nowhere", 404},
	} {
		if status, e := f.do(t, c.method, c.path, c.body); status != c.status || e.Message != c.message || e.Code == 0 {
			t.Errorf("%s %s: %d %+v", c.method, c.path, status, e)
		}
	}
}

func TestClip(t *testing.T) {
	for in, want := range map[string]string{
		"": "", strings.Repeat("x", 100): strings.Repeat("x", 100), strings.Repeat("x", 101): strings.Repeat("x", 100) + "…",
		strings.Repeat("x", 99) + "öö": strings.Repeat("x", 99) + "…",
	} {
		if got := clip(in); got != want {
			t.Errorf("clip(%q) = %q", in, got)
		}
	}
}

// A refusal is in the log with what it is about, also when the request itself was wrong.
func TestRefusalsAreLogged(t *testing.T) {
	f := newFixture(t)
	_, e := f.do(t, "POST", wire.Prefix, `{"host":"nowhere","containerID":"c-1","podName":"web-0","podNamespace":"shop"}`)
	for _, part := range []string{
		"msg=\"request refused\"", "reason=BadRequest", "pod=shop/web-0", "container=c-1", "host=nowhere", "request_id=" + e.RequestID,
	} {
		if !strings.Contains(f.log.String(), part) {
			t.Errorf("the log has no %s: %s", part, &f.log)
		}
	}
}

package http_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// receiver is an OpenTelemetry collector that keeps the spans that it gets.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracev1.Span
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	c := &receiver{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in collector.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(body, &in)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, resource := range in.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(c.Close)
	return c
}

// of are the spans of a trace, in the order in which they began.
func (c *receiver) of(trace string) []*tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*tracev1.Span
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == trace {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *tracev1.Span) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) })
	return out
}

// A request is one span below its caller's, with the stages below it.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := newReceiver(t)
	i := startFor(t, account(t, shared.cluster), func(o *controller.Options) { o.OTLPEndpoint = c.URL })
	s := newSite(t)
	s.call = i.caller()
	s.pool(1, nil)
	controlplane.Eventually(t, func() error { // or two write its object at once
		if n := s.call.get(t, "/pool/"+s.Namespace).Total; n != 1 {
			return fmt.Errorf("the pool has %d objects", n)
		}
		return nil
	})
	s.pod("web-0")
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	body := s.request(newID(), "web-0")
	s.call.do(t, "POST", prefix, body, "Traceparent", "00-"+trace+"-"+parent+"-01", "X-Request-Id", "traced").done(t)
	var spans []*tracev1.Span
	controlplane.Eventually(t, func() error {
		if spans = c.of(trace); len(spans) < 7 {
			return fmt.Errorf("%d spans so far", len(spans))
		}
		return nil
	})
	top := spans[0]
	var stages []string
	for _, span := range spans[1:] {
		if string(span.ParentSpanId) != string(top.SpanId) {
			t.Errorf("span %s is not below that of the request", span.Name)
		}
		stages = append(stages, span.Name)
	}
	if want := []string{"lock", "pod", "decide", "queue", "write", "confirm"}; !slices.Equal(stages, want) {
		t.Errorf("stages %v, want %v", stages, want)
	}
	about := map[string]string{}
	for _, a := range top.Attributes {
		about[a.Key] = a.Value.GetStringValue()
	}
	if top.Name != "allocate" || hex.EncodeToString(top.ParentSpanId) != parent ||
		about["bcsnet.request_id"] != "traced" ||
		about["bcsnet.pod"] != s.owner("web-0") || about["bcsnet.container"] != body["containerID"] {
		t.Errorf("span of the request: %v", top)
	}

	// A refusal says why.
	const refused = "0af7651916cd43dd8448eb211c80319d"
	s.pod("web-1")
	s.call.do(t, "POST", prefix, s.request(newID(), "web-1"), "Traceparent", "00-"+refused+"-"+parent+"-01").
		refusedWith(t, "PoolExhausted")
	controlplane.Eventually(t, func() error {
		for _, span := range c.of(refused) {
			if span.Name == "allocate" && span.Status.GetCode() == tracev1.Status_STATUS_CODE_ERROR {
				return nil
			}
		}
		return fmt.Errorf("no span of the refusal among %v", c.of(refused))
	})
}

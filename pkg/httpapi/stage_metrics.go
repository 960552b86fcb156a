package httpapi

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/bcsnet/bcsnet/pkg/store"
)

// newStageMetrics registers the histograms of the stages, each with its label resolved.
func newStageMetrics(r prometheus.Registerer) map[store.Stage]prometheus.Observer {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "bcsnet_stage_duration_seconds",
		Help: "Time that requests spend in one stage: lock (waiting for another request of the same interface), pod " +
			"(finding the pod), decide (picking addresses in memory), ending (waiting for a pod of the same app that " +
			"is being deleted and has an address), queue (waiting for a place among the writes in flight), read (one " +
			"lease from the API server), write (one write), confirm (waiting for the own watch to deliver the write: " +
			"how far the watch lags behind).",
		Buckets: prometheus.ExponentialBuckets(0.00001, 4, 11), // 10 µs to 10 s
	}, []string{"stage"})
	r.MustRegister(seconds)
	stages := map[store.Stage]prometheus.Observer{}
	for _, s := range store.Stages() {
		stages[s] = seconds.WithLabelValues(string(s))
	}
	return stages
}

// Stage implements store.Observer: it times the stages of requests, and creates spans for them in requests that are
// traced. The controller's own work is not counted.
func (m *Metrics) Stage(ctx context.Context, stage store.Stage) (end func(error)) {
	if !isRequest(ctx) {
		return func(error) {}
	}
	began := time.Now()
	var span trace.Span
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		_, span = parent.TracerProvider().Tracer(tracerName).Start(ctx, string(stage))
	}
	return func(err error) {
		m.stages[stage].Observe(time.Since(began).Seconds())
		if span != nil {
			endSpan(span, err)
		}
	}
}

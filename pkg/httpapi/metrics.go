package httpapi

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Outcomes for leases that the list of a CNI GC lacks.
const (
	outcomeReleased = "Released"
	outcomeRunning  = "Running"
	outcomeWaiting  = "Waiting"
)

// Metrics counts and times the operations of the service. Its labels have few values: names of operations and reasons,
// never data of callers.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	// conflicts counts addresses for which another machine answers.
	conflicts *prometheus.CounterVec
	// limited counts requests that were refused because of their caller's rate.
	limited *prometheus.CounterVec
	// unlisted counts leases that the list of a CNI GC lacks.
	unlisted *prometheus.CounterVec
	stages   map[store.Stage]prometheus.Observer
}

// NewMetrics registers the service's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bcsnet_requests_total",
			Help: "Allocator requests by operation and reason; an empty reason is success.",
		}, []string{"operation", "reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "bcsnet_request_duration_seconds",
			Help:    "Time from a request's arrival to its answer, by operation.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"operation"}),
		conflicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bcsnet_address_conflicts_total",
			Help: "Reports that somebody else answers for an address which a container was given, by outcome: the " +
				"address is Quarantined, Released because a brake held that back, or Kept by its holder.",
		}, []string{"outcome"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bcsnet_rate_limited_total",
			Help: "Requests that were refused with HTTP 429, or 503 if they release addresses, because their " +
				"caller had sent too many, by what is counted: a node, a host that calls by plain HTTP, a user for a " +
				"host, an address whose callers are unknown, or a user whom RBAC denied.",
		}, []string{"caller"}),
		unlisted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bcsnet_gc_unlisted_total",
			Help: "Leases that the list of a CNI GC lacks, by what became of them: Released because their pod is " +
				"gone, Running as their pod is there, or Waiting for the garbage collection because their containers " +
				"may still run.",
		}, []string{"outcome"}),
	}
	r.MustRegister(m.requests, m.seconds, m.conflicts, m.limited, m.unlisted)
	for _, outcome := range []string{outcomeReleased, outcomeRunning, outcomeWaiting} {
		m.unlisted.WithLabelValues(outcome)
	}
	for _, kind := range rateKinds() {
		m.limited.WithLabelValues(string(kind))
	}
	for _, o := range [...]lease.ConflictOutcome{
		lease.ConflictQuarantined, lease.ConflictReleased, lease.ConflictKept,
	} {
		m.conflicts.WithLabelValues(o.String())
	}
	m.stages = newStageMetrics(r)
	return m
}

func (m *Metrics) count(operation string, reason ipam.Reason) {
	m.requests.WithLabelValues(operation, string(reason)).Inc()
}

func (m *Metrics) took(operation string, d time.Duration) {
	m.seconds.WithLabelValues(operation).Observe(d.Seconds())
}

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

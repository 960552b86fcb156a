package httpapi

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

package httpapi

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Metrics counts and times the operations of the service.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
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
	}
	r.MustRegister(m.requests, m.seconds)
	return m
}

func (m *Metrics) observe(operation string, reason ipam.Reason, took time.Duration) {
	m.requests.WithLabelValues(operation, string(reason)).Inc()
	m.seconds.WithLabelValues(operation).Observe(took.Seconds())
}

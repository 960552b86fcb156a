package history

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics has the counters of the recorder.
type metrics struct {
	records, failures atomic.Uint64
	parts             atomic.Int64
}

func (m *metrics) register(r prometheus.Registerer, dropped *atomic.Uint64) {
	counter := func(name, help string, n *atomic.Uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(n.Load()) })
	}
	r.MustRegister(
		counter("bcsnet_history_records_total", "Records of the history that this replica has written.", &m.records),
		counter("bcsnet_history_dropped_total",
			"Records of the history that were dropped, because too many waited to be written; the history has a gap "+
				"there.",
			dropped),
		counter("bcsnet_history_write_failures_total",
			"Writes of the history that failed; the records wait for the next one.", &m.failures),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "bcsnet_history_parts", Help: "Objects that hold the history, as the leader counts them.",
		}, func() float64 { return float64(m.parts.Load()) }),
	)
}

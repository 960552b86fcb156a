package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// poolMetrics reads the counts of the pools when it is scraped, so series go with their pool.
type poolMetrics struct {
	index     *ipam.Index
	addresses *prometheus.Desc
	objects   *prometheus.Desc
}

func newPoolMetrics(index *ipam.Index) *poolMetrics {
	return &poolMetrics{
		index: index,
		addresses: prometheus.NewDesc("bcsnet_pool_addresses", "Addresses of a pool by state: free, active, reserved; capacity is all that it serves.",
			[]string{"pool", "state"}, nil),
		objects: prometheus.NewDesc("bcsnet_index_addresses", "Addresses that have an object, as the index holds them.", nil, nil),
	}
}

// Describe names the metrics.
func (m *poolMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.addresses
	ch <- m.objects
}

// Collect reads the index.
func (m *poolMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(m.objects, float64(m.index.Len()))
	for _, p := range m.index.Pools() {
		c := m.index.Counts(p.Name)
		gauge(m.addresses, float64(c.Capacity), p.Name, "capacity")
		gauge(m.addresses, float64(c.Free), p.Name, "free")
		gauge(m.addresses, float64(c.Active), p.Name, "active")
		gauge(m.addresses, float64(c.Reserved), p.Name, "reserved")
	}
}

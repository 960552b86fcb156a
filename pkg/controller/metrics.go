package controller

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/serving/port"
)

// poolMetrics reads the counts of the pools at each scrape, so that series end with their pool.
type poolMetrics struct {
	index     *index.Index
	now       func() time.Time
	addresses *prometheus.Desc
	objects   *prometheus.Desc
	used      *prometheus.Desc
	quota     *prometheus.Desc
	// quarantined describes the number of quarantined addresses, which are also counted as reserved.
	quarantined *prometheus.Desc
}

func newPoolMetrics(index *index.Index, now func() time.Time) *poolMetrics {
	return &poolMetrics{
		index: index, now: now,
		addresses: prometheus.NewDesc("bcsnet_pool_addresses",
			"Addresses of a pool by state: free, active, reserved, cooling; capacity is all that it serves or has "+
				"leases on.",
			[]string{"pool", "state"}, nil),
		used: prometheus.NewDesc("bcsnet_pool_namespace_addresses",
			"Addresses of a pool that count for a namespace, if the pool limits how many: in use by its pods, or "+
				"of its claims.",
			[]string{"pool", "namespace"}, nil),
		quota: prometheus.NewDesc("bcsnet_pool_namespace_quota",
			"Addresses of a pool that a namespace may have, if the pool limits how many.",
			[]string{"pool", "namespace"}, nil),
		quarantined: prometheus.NewDesc("bcsnet_pool_quarantined_addresses",
			"Addresses of a pool that nobody gets for a time, because somebody else answered for them; they count as "+
				"reserved, too.",
			[]string{"pool"}, nil),
		objects: prometheus.NewDesc("bcsnet_index_addresses", "Addresses that have an object, as the index holds them.",
			nil, nil),
	}
}

// Describe sends the descriptions of the metrics.
func (m *poolMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.addresses
	ch <- m.objects
	ch <- m.used
	ch <- m.quota
	ch <- m.quarantined
}

// Collect reads the index and sends the metrics.
func (m *poolMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(m.objects, float64(m.index.Leases.Len()))
	quarantined := map[string]int{}
	for _, l := range m.index.Leases.Contested() {
		if p, ok := m.index.Pools.Get(l.Pool); ok && l.IsQuarantined() {
			quarantined[p.CountedAs()]++
		}
	}
	for _, p := range m.index.Pools.All() {
		if p.Block { // counted with its parent
			continue
		}
		c := m.index.Pools.Counts(p.Name, m.now())
		gauge(m.addresses, float64(c.Capacity), p.Name, "capacity")
		gauge(m.addresses, float64(c.Free), p.Name, "free")
		gauge(m.addresses, float64(c.Active), p.Name, "active")
		gauge(m.addresses, float64(c.Reserved), p.Name, "reserved")
		gauge(m.addresses, float64(c.Cooling), p.Name, "cooling")
		gauge(m.quarantined, float64(quarantined[p.Name]), p.Name)
		for _, u := range m.index.Pools.QuotaUse(p.Name) {
			gauge(m.used, float64(u.Has), p.Name, u.Namespace)
			gauge(m.quota, float64(u.Quota), p.Name, u.Namespace)
		}
	}
}

// addServer serves some pages on an address of their own; "0" means none. name is the name in its flag.
func addServer(mgr ctrl.Manager, name, address string, pages http.Handler, log *slog.Logger) error {
	if address == "0" {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--%s-bind-address: %w", name, err)
	}
	server, bounded := port.Pages(listener, pages, log)
	return mgr.Add(&manager.Server{
		Name: name, Listener: bounded, ShutdownTimeout: new(time.Second), Server: server,
	})
}

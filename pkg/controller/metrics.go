package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/controller/pool"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/serving/port"
	"github.com/bcsnet/bcsnet/pkg/store"
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
	return mgr.Add(&manager.Server{Name: name, Listener: bounded, ShutdownTimeout: new(time.Second), Server: server})
}

// storeMetrics reads the counters of the store and the allocator at each scrape. They themselves do not depend on
// metrics.
type storeMetrics struct {
	leases *store.Client
	feed   *store.Feed
	adder  statsReader

	writes, conflicts, throttled, unknown, refused, inFlight, waiting *prometheus.Desc
	again, inDoubt                                                    *prometheus.Desc
	lists, watches, silences, idle                                    *prometheus.Desc
}

// statsReader reads the counts of ADDs.
type statsReader interface{ Stats() allocator.Stats }

func newStoreMetrics(leases *store.Client, feed *store.Feed, adder statsReader) *storeMetrics {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &storeMetrics{
		leases: leases, feed: feed, adder: adder,
		writes: desc(
			"bcsnet_writes_total",
			"Writes of addresses that were sent to the API server, for requests and on the controller's own account."),
		conflicts: desc("bcsnet_write_conflicts_total",
			"Writes of addresses that met another writer; nothing was stored by them."),
		throttled: desc("bcsnet_writes_throttled_total",
			"How often the API server turned a write away for a while (429); it was sent again."),
		unknown: desc("bcsnet_writes_unknown_total",
			"Writes of which the API server did not say whether it stored them; the next request settles it."),
		refused: desc("bcsnet_writes_refused_total",
			"Writes of addresses that were not sent, because they could not be done before their request's deadline; "+
				"the caller was told when to ask again."),
		inFlight: desc("bcsnet_writes_in_flight",
			"Writes of addresses that are on their way to the API server, or stored and not yet delivered by the "+
				"watch, at most 128."),
		waiting: desc("bcsnet_writes_waiting", "Writes of addresses that wait for a place among those in flight."),
		again: desc("bcsnet_allocator_retries_total",
			"How often a request looked again because the picture had changed under it."),
		inDoubt: desc("bcsnet_addresses_in_doubt",
			"Addresses that nobody is given because the outcome of a write is open."),
		lists: desc("bcsnet_feed_lists_total",
			"Full lists of the addresses that the index was filled with; one for each start, more mean that watches "+
				"expire."),
		watches: desc("bcsnet_feed_watches_total",
			"Watches of the addresses that began; each lasts five to ten minutes."),
		silences: desc("bcsnet_feed_silent_watches_total",
			"Watches of the addresses that were ended because they did not deliver a write within a second of its "+
				"answer."),
		idle: desc(
			"bcsnet_feed_idle_seconds",
			"Time since the watch of the addresses delivered anything; the API server sends something every minute."),
	}
}

// Describe sends the descriptions of the metrics.
func (m *storeMetrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect reads the counters and sends the metrics.
func (m *storeMetrics) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v uint64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	writes, decisions, feed := m.leases.Stats(), m.adder.Stats(), m.feed.Stats()
	counter(m.writes, writes.Writes)
	counter(m.conflicts, writes.Conflicts)
	counter(m.throttled, writes.Throttled)
	counter(m.unknown, writes.Unknown)
	counter(m.refused, writes.Refused)
	gauge(m.inFlight, float64(writes.InFlight))
	gauge(m.waiting, float64(writes.Waiting))
	counter(m.again, decisions.Again)
	gauge(m.inDoubt, float64(decisions.InDoubt))
	counter(m.lists, feed.Lists)
	counter(m.watches, feed.Watches)
	counter(m.silences, feed.Silences)
	gauge(m.idle, feed.Idle.Seconds())
}

// restoreReporter counts leases that were created again after their object was lost, and creates an event for each.
type restoreReporter struct {
	pools *pool.Reconciler
	lost  *prometheus.CounterVec
}

func newRestoreReporter(pools *pool.Reconciler, registry prometheus.Registerer) *restoreReporter {
	r := &restoreReporter{pools: pools, lost: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bcsnet_lost_addresses_total",
		Help: "Addresses whose object was deleted while they were held, by what came of it: restored.",
	}, []string{"result"})}
	r.lost.WithLabelValues("restored")
	registry.MustRegister(r.lost)
	return r
}

// report counts one restored lease, and creates the event.
func (r *restoreReporter) report(l lease.Lease) {
	r.lost.WithLabelValues("restored").Inc()
	use := "reserved"
	if l.State == lease.Active {
		use = "held by " + l.Where()
	}
	r.pools.EventOfAddress(context.Background(), l, corev1.EventTypeWarning, v1.ReasonAddressRestored, "Restore",
		"the object of address "+l.Addr.String()+" was deleted although the address was "+use+"; it was made again")
}

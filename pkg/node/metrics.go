package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
	"github.com/bcsnet/bcsnet/pkg/cni/undelivered"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// readEvery is the longest interval in which calls.log is read: it is rotated after some thousand calls.
const readEvery = 10 * time.Second

// metrics are the node's metrics. Calls are also counted at each scrape, so that the metrics are up to date.
type metrics struct {
	options  Options
	tokens   *tokens
	registry *prometheus.Registry

	mu       sync.Mutex
	follower *runstate.Follower

	calls      *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	unreadable prometheus.Counter
	failures   *prometheus.CounterVec
	inOrder    prometheus.Gauge
	condition  *prometheus.GaugeVec
	asked      *prometheus.CounterVec

	undelivered, token *prometheus.Desc
}

func newMetrics(o Options, age *tokens) *metrics {
	m := &metrics{
		options: o, tokens: age, registry: prometheus.NewRegistry(), follower: runstate.Dir(o.RunDir).Follow(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bcsnet_node_calls_total",
			Help: "Calls of bcsnet-ipam on this node, by command, by outcome as calls.log has it, and by the " +
				"allocator's reason for a refusal. Delivered and dropped are records of releases.",
		}, []string{"command", "outcome", "reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "bcsnet_node_call_duration_seconds", Help: "Time that a call of bcsnet-ipam took, by command.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"command"}),
		unreadable: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "bcsnet_node_calls_unreadable_total", Help: "Lines of calls.log that cannot be read.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bcsnet_node_install_failures_total", Help: "Steps of the installation that failed, by step.",
		}, []string{"step"}),
		inOrder: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "bcsnet_node_installed", Help: "1 while all that bcsnet-node installs on the node is in place.",
		}),
		condition: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "bcsnet_node_condition",
			Help: "1 for the reason that the Node's condition BcsnetReady has, 0 for the others.",
		}, []string{"reason"}),
		asked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bcsnet_node_checks_total",
			Help: "Questions of bcsnet-node to the allocator, by result: answered, or unanswered.",
		}, []string{"result"}),
		undelivered: prometheus.NewDesc("bcsnet_node_undelivered_records",
			"Releases on this node's disk that no replica took yet.", nil, nil),
		token: prometheus.NewDesc("bcsnet_node_token_age_seconds",
			"Time since the token of the plugins was last renewed; none if there is no token.", nil, nil),
	}
	for _, step := range Steps() {
		m.failures.WithLabelValues(step)
	}
	for _, result := range []string{answered, unanswered} {
		m.asked.WithLabelValues(result)
	}
	m.registry.MustRegister(m, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.calls, m.seconds, m.unreadable, m.failures, m.inOrder, m.condition, m.asked}
}

// Describe sends the descriptions of the metrics.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
	ch <- m.undelivered
	ch <- m.token
}

// Collect reads the node's files and sends the metrics.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	_ = m.read() // run logs the error
	if n, err := undelivered.In(m.options.DataDir).Len(); err == nil {
		ch <- prometheus.MustNewConstMetric(m.undelivered, prometheus.GaugeValue, float64(n))
	}
	if age, _, err := m.tokens.age(); err == nil && m.options.TokenFile != "" {
		ch <- prometheus.MustNewConstMetric(m.token, prometheus.GaugeValue, age.Seconds())
	}
	for _, c := range m.all() {
		c.Collect(ch)
	}
}

// read counts the calls since the last read.
func (m *metrics) read() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	unreadable, err := m.follower.Next(m.count)
	m.unreadable.Add(float64(unreadable))
	return err
}

// count counts one call. Only words that this release knows become labels.
func (m *metrics) count(c runstate.Call) {
	command, outcome, reason := known(c.Command, commands()), known(string(c.Outcome), outcomes()), c.Reason
	if reason != "" && !slices.ContainsFunc(ipam.ReasonTable(), func(i ipam.ReasonInfo) bool {
		return string(i.Reason) == reason
	}) {
		reason = other
	}
	m.calls.WithLabelValues(command, outcome, reason).Inc()
	if c.Outcome != runstate.Delivered && c.Outcome != runstate.Dropped && c.Milliseconds >= 0 {
		m.seconds.WithLabelValues(command).Observe(c.Milliseconds / 1000)
	}
}

// other is the label for a word that this release does not know.
const other = "other"

func known(word string, words []string) string {
	if slices.Contains(words, word) {
		return word
	}
	return other
}

func commands() []string { return []string{"ADD", "DEL", "CHECK", "GC", "STATUS"} }

func outcomes() (all []string) {
	for _, o := range []runstate.Outcome{
		runstate.OK, runstate.Refused, runstate.Unanswered, runstate.Conflict, runstate.Invalid, runstate.Failed,
		runstate.Recorded, runstate.Lost, runstate.Delivered, runstate.Dropped,
	} {
		all = append(all, string(o))
	}
	return all
}

func (m *metrics) failed(step string) { m.failures.WithLabelValues(step).Inc() }

func (m *metrics) installed(yes bool) {
	value := 0.0
	if yes {
		value = 1
	}
	m.inOrder.Set(value)
}

// run reads calls.log periodically, even without scrapes, until the context ends.
func (m *metrics) run(ctx context.Context) error {
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			m.log(m.read())
			return m.close()
		case <-tick.C:
			m.log(m.read())
		}
	}
}

func (m *metrics) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.follower.Close()
}

func (m *metrics) log(err error) {
	if err != nil {
		m.options.logger().Warn("calls.log cannot be read", "error", err)
	}
}

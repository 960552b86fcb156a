package controller

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// examineEvery is the interval in which the leader runs the checks.
const examineEvery = 3 * time.Minute

// doctorRunner runs the checks of package doctor on the leader and publishes the numbers of their findings. It reads
// caches and the index, never the API server.
type doctorRunner struct {
	cache    client.Reader
	index    *index.Index
	leases   *store.Client
	ready    func() error
	checks   []doctor.Check
	findings *prometheus.GaugeVec
	log      *slog.Logger
}

func newDoctorRunner(cache client.Reader, c *core, log *slog.Logger) *doctorRunner {
	e := &doctorRunner{
		cache: cache, index: c.index, leases: c.leases, ready: c.ready, checks: cachedChecks(), log: log,
		findings: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "bcsnet_doctor_findings",
			Help: "Findings of the checks of bcsnetctl doctor, as the leader sees them every few minutes.",
		}, []string{"check", "severity"}),
	}
	c.registry.MustRegister(e.findings)
	return e
}

// cachedChecks returns the checks that need only data from the caches.
func cachedChecks() []doctor.Check {
	cached := []doctor.Part{doctor.PartPools, doctor.PartAddresses, doctor.PartClaims, doctor.PartPods,
		doctor.PartNodes}
	return slices.DeleteFunc(doctor.Checks(), func(c doctor.Check) bool {
		return slices.ContainsFunc(c.Needs, func(p doctor.Part) bool { return !slices.Contains(cached, p) })
	})
}

// Start runs the checks until the context ends, that is for a term of the leader. The published numbers end with the
// term: the next leader publishes its own.
func (e *doctorRunner) Start(ctx context.Context) error {
	if !leadership.AwaitReady(ctx, e.ready) {
		return nil
	}
	defer e.findings.Reset()
	leadership.Every(ctx, examineEvery, func() {
		if s, err := e.snapshot(ctx); err == nil {
			e.publish(doctor.Examine(s, e.checks))
		} else if ctx.Err() == nil {
			e.log.Warn("the checks of doctor did not run", "error", err)
		}
	})
	return nil
}

func (e *doctorRunner) publish(r doctor.Report) {
	counts := map[string]int{}
	for _, f := range r.Findings {
		counts[f.Check]++
	}
	for _, c := range r.Ran {
		e.findings.WithLabelValues(c.ID, string(c.Severity)).Set(float64(counts[c.ID]))
	}
}

func (e *doctorRunner) snapshot(ctx context.Context) (*doctor.Snapshot, error) {
	s := &doctor.Snapshot{Now: e.leases.Now()}
	var pools v1.BCSNetPoolList
	if err := e.cache.List(ctx, &pools); err != nil {
		return nil, err
	}
	for i := range pools.Items {
		s.Pools = append(s.Pools, doctor.Pool{Pool: store.Pool(&pools.Items[i]), Object: &pools.Items[i]})
	}
	var claims v1.BCSNetIPClaimList
	if err := e.cache.List(ctx, &claims); err != nil {
		return nil, err
	}
	for i := range claims.Items {
		s.Claims = append(s.Claims, &claims.Items[i])
	}
	var pods corev1.PodList
	if err := e.cache.List(ctx, &pods); err != nil {
		return nil, err
	}
	s.Pods = make([]workload.Pod, 0, len(pods.Items))
	for i := range pods.Items {
		s.Pods = append(s.Pods, workload.FromObject(&pods.Items[i]))
	}
	var nodes corev1.NodeList
	if err := e.cache.List(ctx, &nodes); err != nil {
		return nil, err
	}
	for i := range nodes.Items {
		s.Nodes = append(s.Nodes, hosts.Of(&nodes.Items[i]))
	}
	s.Leases = e.index.Leases.Find(func(l lease.Lease) bool { return doctor.Concerns(l, s.Now) })
	return s, nil
}

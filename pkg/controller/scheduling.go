package controller

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/controller/node"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/scheduling"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// forgetEvery is how often a replica that nobody asks forgets pods that have their addresses by now.
const forgetEvery = 30 * time.Second

// addScheduling adds what the scheduler is told: by every replica which nodes are for a pod, by the leader how many
// addresses there are for each node.
func addScheduling(
	ctx context.Context, mgr ctrl.Manager, o Options, index *ipam.Index, pods *workload.Pods, nodes *node.Nodes, policies *workload.Resolver,
	now func() time.Time, leads *leadership.Terms, ready func() error, registry prometheus.Registerer, log *slog.Logger,
) (*scheduling.Extender, error) {
	resources, err := scheduling.ParseResources(o.NodeResources)
	if err != nil {
		return nil, err
	}
	// Terms without Missing: a pod that is asked about needs no claim yet.
	terms := &claim.Terms{Policies: policies, Claims: mgr.GetCache(), Index: index}
	extender := scheduling.New(index, terms, pods, nodes.Of, now, resources)
	if _, err := informers.Watch(ctx, mgr.GetCache(), &corev1.Pod{}, informers.Handler(extender.PodChanged, extender.PodGone)); err != nil {
		return nil, err
	}
	registry.MustRegister(&assumedMetrics{extender})
	forget := func(ctx context.Context) error {
		leadership.Every(ctx, forgetEvery, func() { extender.Assumed() })
		return nil
	}
	if err := mgr.Add(manager.RunnableFunc(forget)); err != nil {
		return nil, err
	}
	c := node.NewCapacity(node.Config{
		Client: mgr.GetClient(), Index: index, Resources: resources, Now: now, Ready: ready, Registry: registry, Log: log,
	})
	if _, err := informers.Watch(ctx, mgr.GetCache(), &corev1.Node{}, informers.Handler(c.Set, c.Remove)); err != nil {
		return nil, err
	}
	index.Subscribe(c.LeaseChanged)
	leads.OnTerm(c.Start)
	return extender, nil
}

// assumedMetrics shows which pods the extender counts on.
type assumedMetrics struct{ extender *scheduling.Extender }

func (assumedMetrics) desc() *prometheus.Desc {
	return prometheus.NewDesc("bcsnet_pods_awaited", "Pods that ask for an address by a resource and have none yet: placed on a node, or chosen, which means let through by the extender and on no node yet.", []string{"state"}, nil)
}

// Describe names the metric.
func (m assumedMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.desc() }

// Collect counts.
func (m assumedMetrics) Collect(ch chan<- prometheus.Metric) {
	placed, chosen := m.extender.Assumed()
	for state, n := range map[string]int{"placed": placed, "chosen": chosen} {
		ch <- prometheus.MustNewConstMetric(m.desc(), prometheus.GaugeValue, float64(n), state)
	}
}

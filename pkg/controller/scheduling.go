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
	"github.com/bcsnet/bcsnet/pkg/scheduling"
)

// forgetEvery is the interval in which a replica drops assumed pods that have their addresses by now, even if no
// scheduler asks it.
const forgetEvery = 30 * time.Second

// addScheduling adds the components for the scheduler. Every replica answers which nodes are suitable for a pod. The
// leader publishes on nodes the number of addresses for them.
func addScheduling(
	ctx context.Context, mgr ctrl.Manager, c *core, o Options, log *slog.Logger,
) (*scheduling.Extender, error) {
	resources, err := scheduling.ParseResources(o.NodeResources)
	if err != nil {
		return nil, err
	}
	// This finder has no Missing: a pod that is only asked about needs no claim yet.
	constraints := &claim.ConstraintsFinder{Policies: c.policies, Claims: mgr.GetCache(), Index: c.index}
	extender := scheduling.New(c.index, constraints, c.pods, c.nodes.Hosts, c.leases.Now, resources)
	pods := informers.Handler(extender.PodChanged, extender.PodGone)
	if _, err := informers.Watch(ctx, mgr.GetCache(), &corev1.Pod{}, pods); err != nil {
		return nil, err
	}
	c.registry.MustRegister(&assumedMetrics{extender})
	forget := func(ctx context.Context) error {
		leadership.Every(ctx, forgetEvery, func() { extender.Assumed() })
		return nil
	}
	if err := mgr.Add(manager.RunnableFunc(forget)); err != nil {
		return nil, err
	}
	capacity := node.NewCapacity(node.Config{
		Client: mgr.GetClient(), Index: c.index, Resources: resources, Now: c.leases.Now,
		Ready: c.ready, Registry: c.registry, Log: log,
	})
	nodes := informers.Handler(capacity.Set, capacity.Remove)
	if _, err := informers.Watch(ctx, mgr.GetCache(), &corev1.Node{}, nodes); err != nil {
		return nil, err
	}
	c.index.Feed.Subscribe(capacity.LeaseChanged)
	c.leads.OnTerm(capacity.Start)
	return extender, nil
}

// assumedMetrics counts the assumed pods.
type assumedMetrics struct{ extender *scheduling.Extender }

func (assumedMetrics) desc() *prometheus.Desc {
	return prometheus.NewDesc("bcsnet_pods_awaited",
		"Pods that ask for an address by a resource and have none yet: placed on a node, or chosen, which means let "+
			"through by the extender and on no node yet.", []string{"state"}, nil)
}

// Describe sends the description of the metric.
func (m assumedMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.desc() }

// Collect sends the number of assumed pods.
func (m assumedMetrics) Collect(ch chan<- prometheus.Metric) {
	placed, chosen := m.extender.Assumed()
	for state, n := range map[string]int{"placed": placed, "chosen": chosen} {
		ch <- prometheus.MustNewConstMetric(m.desc(), prometheus.GaugeValue, float64(n), state)
	}
}

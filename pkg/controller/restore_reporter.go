package controller

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/pool"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

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
		"the object of address "+l.Addr.String()+" was deleted although the address was "+use+"; it was created again")
}

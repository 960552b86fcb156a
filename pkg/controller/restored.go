package controller

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// restored tells of addresses whose object went while they were held.
type restored struct {
	pools *poolReconciler
	lost  *prometheus.CounterVec
}

func newRestored(pools *poolReconciler, registry prometheus.Registerer) *restored {
	r := &restored{pools: pools, lost: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bcsnet_lost_addresses_total",
		Help: "Addresses whose object was deleted while they were held, by what came of it: restored, or given-up when the holder was gone.",
	}, []string{"result"})}
	for _, result := range []string{"restored", "given-up"} {
		r.lost.WithLabelValues(result)
	}
	registry.MustRegister(r.lost)
	return r
}

func (r *restored) settled(l ipam.Lease, again bool) {
	if !again {
		r.lost.WithLabelValues("given-up").Inc()
		serving, _ := r.pools.index.PoolOf(l.Addr)
		r.pools.unsettle(serving) // which may want an object of it
		r.pools.enqueue(serving, statusDelay)
		return
	}
	r.lost.WithLabelValues("restored").Inc()
	use := "reserved"
	if l.State == ipam.Active {
		use = "held by " + l.Where()
	}
	r.pools.tellOfAddress(context.Background(), l, corev1.EventTypeWarning, v1.ReasonAddressRestored, "Restore",
		"the object of address "+l.Addr.String()+" was deleted although the address was "+use+"; it was made again")
}

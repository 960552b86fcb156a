package pool

import (
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
)

// Queue is the queue of pools to reconcile. It is created before the reconciler, for components whose changes affect
// pools.
type Queue struct {
	*leadership.Queue
	pools Serving
}

// Serving names the pools of addresses and hosts: the pools of the index do.
type Serving interface {
	// Covering names the pools from which a host with one of some addresses may draw.
	Covering(addrs []netip.Addr) []string
	// PoolOf names the pool that serves an address.
	PoolOf(a netip.Addr) (string, bool)
}

// NewQueue returns the queue of a reconciler.
func NewQueue(leads *leadership.Terms, pools Serving) *Queue {
	return &Queue{Queue: leadership.NewQueue(leads), pools: pools}
}

// Enqueue queues a pool to be reconciled after a delay. It does nothing on a replica that does not lead.
func (q *Queue) Enqueue(name string, after time.Duration) {
	q.Add(types.NamespacedName{Name: name}, after)
}

// Now queues a pool to be reconciled at once.
func (q *Queue) Now(name string) { q.Enqueue(name, 0) }

// NodeChanged queues pools after a node has gained or lost addresses, or its labels have changed: the pools that serve
// such an address, the pools from which the node may draw, and the pools whose host selectors now select other hosts.
func (q *Queue) NodeChanged(addrs []netip.Addr, reselected []string) {
	for _, name := range reselected {
		q.Enqueue(name, conditions.WriteDelay)
	}
	for _, name := range q.pools.Covering(addrs) {
		q.Enqueue(name, conditions.WriteDelay)
	}
	for _, a := range addrs {
		if serving, ok := q.pools.PoolOf(a); ok {
			q.Enqueue(serving, conditions.WriteDelay)
		}
	}
}

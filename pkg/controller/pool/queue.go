package pool

import (
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
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

// Rebound queues pools whose bound namespaces have changed.
func (r *Reconciler) Rebound(names []string) {
	for _, name := range names {
		r.Queue.Enqueue(name, conditions.WriteDelay)
	}
}

// servedText describes the namespaces that a pool is for, by their number; empty for a pool of the default chain.
func (r *Reconciler) servedText(p ipam.Pool) string {
	named, matched := r.Index.Pools.NamespacesOf(p.Name)
	switch {
	case p.InDefaultChain():
		return ""
	case !p.Bound():
		return ", which serves only requests that name it"
	case p.NamespaceSelector == nil:
		return ", bound to " + humanize.Plural(named, "namespace")
	case named+matched == 0:
		return ", bound to no namespace at present: its selector matches none"
	case matched == 0:
		return ", bound to " + humanize.Plural(named, "namespace") + ", and its selector matches no other"
	default:
		return fmt.Sprintf(", bound to %s, %d of them by its selector", humanize.Plural(named+matched, "namespace"),
			matched)
	}
}

package pool

import (
	"fmt"

	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Rebound queues pools whose bound namespaces have changed.
func (r *Reconciler) Rebound(names []string) {
	for _, name := range names {
		r.queue.Enqueue(name, conditions.WriteDelay)
	}
}

// servedText describes the namespaces that a pool is for, by their number; empty for a pool of the default chain.
func (r *Reconciler) servedText(p ipam.Pool) string {
	named, matched := r.index.Pools.NamespacesOf(p.Name)
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

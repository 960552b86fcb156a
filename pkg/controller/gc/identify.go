package gc

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// identify corrects a lease that has an older UID of its pod: it gets the current UID if the API server's pod also
// reports the address. Otherwise code that compares UIDs would take the pod for another one.
func (c *Collector) identify(ctx context.Context, l lease.Lease) {
	ctx, cancel := context.WithTimeout(ctx, allocator.MaxRequestTime)
	defer cancel()
	pod, err := c.livePod(ctx, l)
	if err != nil || pod == nil || !gone.Misnamed(l, *pod) {
		return // the next pass repeats it
	}
	next, ok := lease.Identify(l, pod.UID)
	if !ok {
		return
	}
	switch _, err := c.Leases.Write(ctx, next); {
	case err == nil:
		c.Log.Info("a lease named an earlier pod than the one that has the address: corrected",
			"address", l.Addr.String(),
			"pod", l.Who(), "pod_uid", pod.UID, "earlier_uid", l.PodUID)
	case store.IgnoreConflict(err) != nil:
		c.Log.Warn("a lease names an earlier pod than the one that has the address", "address", l.Addr.String(), "pod",
			l.Who(), "error", err)
	}
}

package httpapi

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Service has the routes of the allocator. Its parts decide about a request before it comes to its route: callers who
// sends it and what they may do, limits whether there is room for it, the Forwarder which replica answers it.
type Service struct {
	options  Options
	refusals *refusals
	limits   *limits
	callers  *callers
	bodies   *bodies
	receipts *receipts
}

// New makes a service. The error names an option that is missing or cannot be.
func New(o Options) (*Service, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	refusals := newRefusals(o.Log, o.Metrics, func() time.Duration {
		return max(o.Leases.Backlog(), o.Forwarder.backlog())
	})
	limits := newLimits(o.Leases.Room, o.Metrics, refusals)
	return &Service{
		options: o, refusals: refusals, limits: limits, callers: newCallers(o, limits.rates, refusals),
		bodies: &bodies{log: o.Log},
		receipts: &receipts{
			index: o.Index, leases: o.Leases, secret: o.Shared, refusals: refusals, log: o.Log,
			compared: cache.NewLRUExpireCache(maxCompared),
		},
	}, nil
}

// Bounds that keep slow and large requests from doing harm.
const (
	headerTime = 5 * time.Second
	// writeTime covers the longest request and the last write of it, which is waited for.
	writeTime = allocator.MaxRequestTime + store.WriteTimeout + 5*time.Second
	maxHeader = 64 << 10
)

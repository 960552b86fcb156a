package httpapi

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// Service has the routes of the allocator. Its parts handle a request before its route: callers identifies the sender
// and checks permissions, limits checks whether there is room, the Forwarder decides which replica answers.
type Service struct {
	options  Options
	refusals *refusals
	limits   *limits
	callers  *callers
	bodies   *bodies
	receipts *receipts
}

// New returns a service. The error names a missing or invalid option.
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

// Bounds against slow and large requests.
const (
	headerTime = 5 * time.Second
	// writeTime covers the longest request and its last write.
	writeTime = allocator.MaxRequestTime + store.WriteTimeout + 5*time.Second
	maxHeader = 64 << 10
)

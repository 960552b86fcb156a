//go:build !faults

package gc

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// lastLook reads the pod of a lease before its address is taken back.
func (c *Collector) lastLook(ctx context.Context, l lease.Lease) (pod *workload.Pod, live bool, err error) {
	pod, err = c.livePod(ctx, l)
	return pod, err == nil, err
}

//go:build faults

package gc

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// lastLook stands in for the one of failpoint_off.go in the build of the fault suite (test/faults). With
// FAULTS_BREAK=collect or live in the environment the collector relies on its cache.
func (c *Collector) lastLook(ctx context.Context, l lease.Lease) (pod *workload.Pod, live bool, err error) {
	if failpoint.Broken("collect", "live") {
		pod, err = c.cachedPod(ctx, l.Holder)
		return pod, false, err
	}
	pod, err = c.livePod(ctx, l)
	return pod, err == nil, err
}

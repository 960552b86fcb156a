//go:build faults

package httpapi

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// alsoRelease replaces the function of failpoint_off.go in the build of the fault suite (test/faults). With
// FAULTS_BREAK=name in the environment, a DEL releases the addresses of the pod with that name.
func (s *Service) alsoRelease(ctx context.Context, in wire.ReleaseRequest) {
	if !failpoint.Broken("name") {
		return
	}
	for _, l := range s.options.Index.Leases.Find(func(l lease.Lease) bool {
		return l.State == lease.Active && l.Namespace == in.PodNamespace && l.PodName == in.PodName
	}) {
		// the DEL itself reports the error
		_, _, _ = s.options.Allocator.Releaser.ReleaseAddress(ctx, l.Addr, l.ContainerID, "", nil)
	}
}

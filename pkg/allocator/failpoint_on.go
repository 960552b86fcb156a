//go:build faults

package allocator

import (
	"context"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// The fault suite (test/faults) builds with this file in place of failpoint_off.go. With
// FAULTS_BREAK=write in the environment an ADD is answered before its address is written.

func (a *Allocator) swap(ctx context.Context, believed, next lease.Lease) (lease.Lease, error) {
	if !failpoint.Broken("write") {
		return a.leases.Swap(ctx, believed, next)
	}
	time.AfterFunc(2*time.Millisecond, func() {
		_, _ = a.leases.Write(context.WithoutCancel(ctx), next) // too late to return an error
	})
	return next, nil
}

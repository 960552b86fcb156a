//go:build faults

package allocator

import (
	"context"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// The fault suite (test/faults) builds with this file in place of failpoint_off.go. With
// FAULTS_BREAK=write in the environment an ADD is answered before its address is written.

func (a *Allocator) write(ctx context.Context, l ipam.Lease) (ipam.Lease, error) {
	if !failpoint.Broken("write") {
		return a.leases.Write(ctx, l)
	}
	time.AfterFunc(2*time.Millisecond, func() {
		_, _ = a.leases.Write(context.WithoutCancel(ctx), l) // too late to tell anybody
	})
	return l, nil
}

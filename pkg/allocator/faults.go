//go:build faults

package allocator

import (
	"context"
	"os"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// The fault suite (test/faults) builds the controller with this file in place of sound.go. With
// FAULTS_BREAK=write in the environment an ADD is answered before its address is written.

//nolint:gochecknoglobals // what a process is born with
var confirms = os.Getenv("FAULTS_BREAK") != "write"

func (a *Allocator) write(ctx context.Context, l ipam.Lease) (ipam.Lease, error) {
	if confirms {
		return a.leases.Write(ctx, l)
	}
	time.AfterFunc(2*time.Millisecond, func() {
		_, _ = a.leases.Write(context.WithoutCancel(ctx), l) // too late to tell anybody
	})
	return l, nil
}

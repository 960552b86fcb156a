//go:build faults

package allocator

import (
	"context"
	"os"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// The fault suite (test/faults) builds with this file in place of failpoint_off.go. FAULTS_BREAK in the environment
// names the guard that is broken; with "write" an ADD is answered before its address is written.

//nolint:gochecknoglobals // what a process is born with
var breaks = os.Getenv("FAULTS_BREAK")

func broken(guard string) bool { return breaks == guard }

func (a *Allocator) write(ctx context.Context, l ipam.Lease) (ipam.Lease, error) {
	if !broken("write") {
		return a.leases.Write(ctx, l)
	}
	time.AfterFunc(2*time.Millisecond, func() {
		_, _ = a.leases.Write(context.WithoutCancel(ctx), l) // too late to tell anybody
	})
	return l, nil
}

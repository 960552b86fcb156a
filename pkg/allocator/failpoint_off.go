//go:build !faults

package allocator

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// What a build with the tag faults breaks on purpose is whole here; the compiler leaves nothing of it.

// write commits an allocation: who gets an answer gets it after that.
func (a *Allocator) write(ctx context.Context, l ipam.Lease) (ipam.Lease, error) {
	return a.leases.Write(ctx, l)
}

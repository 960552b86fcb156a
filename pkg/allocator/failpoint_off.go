//go:build !faults

package allocator

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// What a build with the tag faults breaks on purpose is whole here; the compiler leaves nothing of it.

// swap commits an allocation: who gets an answer gets it after that.
func (a *Allocator) swap(ctx context.Context, believed, next lease.Lease) (lease.Lease, error) {
	return a.leases.Swap(ctx, believed, next)
}

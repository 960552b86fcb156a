//go:build !faults

package store

import (
	"context"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// What a build with the tag faults breaks on purpose is whole here; the compiler leaves nothing of it.

// localTime returns the time of this machine's clock.
func localTime() time.Time { return time.Now() }

// expected returns the version that a write wants to replace: the one that its caller decided on.
func (c *Client) expected(_ context.Context, l lease.Lease) lease.Lease { return l }

//go:build faults

package store

import (
	"context"
	"os"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// The fault suite (test/faults) builds the controller with this file in place of failpoint_off.go. Environment:
//
//	FAULTS_CLOCK=2h            the clock of this machine is two hours ahead
//	FAULTS_BREAK=precondition  writes replace whatever is there

func localTime() time.Time {
	ahead, _ := time.ParseDuration(os.Getenv("FAULTS_CLOCK")) // none: it is right
	return time.Now().Add(ahead)
}

func (c *Client) expected(ctx context.Context, l lease.Lease) lease.Lease {
	if !failpoint.Broken("precondition") {
		return l
	}
	if live, err := c.Get(ctx, l.Addr); err == nil {
		l.Version = live.Version
	}
	return l
}

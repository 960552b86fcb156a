//go:build faults

package store

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// The fault suite (test/faults) builds the controller with this file in place of sound.go. Environment:
//
//	FAULTS_CLOCK=2h30m@5s      the clock of this machine steps by 2h30m, 5s after the start
//	FAULTS_BREAK=precondition  writes replace whatever is there

//nolint:gochecknoglobals // what a process is born with
var began, step, stepAfter = clockFault()

func clockFault() (time.Time, time.Duration, time.Duration) {
	by, after, _ := strings.Cut(os.Getenv("FAULTS_CLOCK"), "@")
	d, _ := time.ParseDuration(by) // none: no step
	wait, _ := time.ParseDuration(after)
	return time.Now(), d, wait
}

func localTime() time.Time {
	now := time.Now()
	if now.Sub(began) >= stepAfter {
		now = now.Add(step)
	}
	return now
}

func (c *Client) expected(ctx context.Context, l ipam.Lease) ipam.Lease {
	if os.Getenv("FAULTS_BREAK") != "precondition" {
		return l
	}
	if live, err := c.Get(ctx, l.Addr); err == nil {
		l.Version = live.Version
	}
	return l
}

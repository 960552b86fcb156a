//go:build !faults

package controller

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// What a build with the tag faults breaks on purpose is whole here; the compiler leaves nothing of it.

// broken reports whether a guard is out of order.
func broken(string) bool { return false }

// hurried are the options of a process that is told to hurry.
func hurried(o Options) Options { return o }

const (
	// hasty is a collector that looks ten times a second.
	hasty = false
	// brakes: too many leases that look given up at once wait.
	brakes = true
)

// lastLook is the look at the pod of a lease before its address is taken back.
func (c *collector) lastLook(ctx context.Context, l ipam.Lease) (pod *workload.Pod, live bool, err error) {
	pod, err = c.livePod(ctx, l)
	return pod, err == nil, err
}

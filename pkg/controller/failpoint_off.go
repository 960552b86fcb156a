//go:build !faults

package controller

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// What a build with the tag faults breaks on purpose is whole here; the compiler leaves nothing of it.

// hurried are the options of a process that is told to hurry.
func hurried(o Options) Options { return o }

// lastLook is the look at the pod of a lease before its address is taken back.
func (c *collector) lastLook(ctx context.Context, l ipam.Lease) (pod *workload.Pod, live bool, err error) {
	pod, err = c.livePod(ctx, l)
	return pod, err == nil, err
}

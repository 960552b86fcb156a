//go:build faults

package controller

import (
	"context"
	"os"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// The fault suite (test/faults) builds the controller with this file in place of failpoint_off.go. With
// FAULTS_BREAK=collect or live in the environment the collector believes its cache. With FAULTS_COLLECT=15s the
// collection waits for so long in place of a pod's grace period, and looks more often.

// hurried are the options of a process that is told to hurry.
func hurried(o Options) Options {
	if after, _ := time.ParseDuration(os.Getenv("FAULTS_COLLECT")); after > 0 { // none: as it is shipped
		o.CollectAfter, o.CollectEvery = after, 2*time.Second
	}
	return o
}

func (c *collector) lastLook(ctx context.Context, l ipam.Lease) (pod *workload.Pod, live bool, err error) {
	if failpoint.Broken("collect", "live") {
		pod, err = c.cachedPod(ctx, l.Holder)
		return pod, false, err
	}
	pod, err = c.livePod(ctx, l)
	return pod, err == nil, err
}

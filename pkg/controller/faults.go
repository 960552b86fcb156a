//go:build faults

package controller

import (
	"context"
	"os"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// The fault suite (test/faults) builds the controller with this file in place of sound.go. FAULTS_BREAK in the environment
// says which guard is broken: collect and those of package gone have the collector look ten times a second, collect and
// live have it believe its cache, and brake has nothing wait.
//
//nolint:gochecknoglobals // what a process is born with
var (
	breaks = os.Getenv("FAULTS_BREAK")
	hasty  = broken("collect") || broken("look") || broken("live") || broken("host")
	brakes = !broken("brake")
)

func broken(guard string) bool { return breaks == guard }

func (c *collector) lastLook(ctx context.Context, l ipam.Lease) (pod *workload.Pod, live bool, err error) {
	if broken("collect") || broken("live") {
		pod, err = c.cachedPod(ctx, l.Holder)
		return pod, false, err
	}
	pod, err = c.livePod(ctx, l)
	return pod, err == nil, err
}

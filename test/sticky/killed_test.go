package sticky_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// killed: replicas of the controller end as in a crash, one after the other and at times both, while workloads change.
func (w *world) killed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	killer.Go(func() { w.kill(ctx, t) })
	var parts []part
	for _, c := range []struct {
		kind   kind
		policy string
		ops    []operation
	}{
		{deployment, immutable, []operation{podDelete, rollInPlace, rollInPlace}},
		{deployment, never, []operation{scaleToZero}},
		{deployment, plain, []operation{rollWithSurge, rollWithSurge}},
		{statefulSet, immutable, []operation{scaleToOne}},
		{statefulSet, timed, []operation{rollInPlace, forceDelete, podDelete}},
		{fleet, immutable, []operation{foreground}},
		{daemonSet, shared, []operation{rollInPlace, podDelete}},
		{barePod, never, []operation{forceDelete, podDelete, podDelete}},
	} {
		name := fmt.Sprintf("killed-%s-%s", c.kind, c.policy)
		parts = append(parts, part{name, func(t *testing.T) { w.through(t, name, c.kind, c.policy, c.ops) }})
	}
	parts = append(parts, part{"expiry", func(t *testing.T) { w.expiry(t, fleet) }})
	runAll(t, parts)
	cancel()
	killer.Wait()
}

// kill kills replicas and starts them again until the context ends.
func (w *world) kill(ctx context.Context, t *testing.T) {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			t.Logf("%d kills", n)
			return
		case <-time.After(time.Duration(1+w.below(4)) * time.Second):
		}
		victims := w.replicas[n%2 : n%2+1]
		if w.chance(4) {
			victims = w.replicas
		}
		for _, c := range victims {
			if err := c.Kill(); err != nil {
				t.Error(fmt.Errorf("kill: %w", err))
			}
		}
		for _, c := range victims {
			if err := c.Start(context.WithoutCancel(ctx)); err != nil {
				t.Error(fmt.Errorf("start again: %w", err))
			}
		}
	}
}

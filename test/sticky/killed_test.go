package sticky_test

import (
	"context"
	"sync"
	"testing"
	"time"
)

// killing runs cases while replicas of the controller end as in a crash, one after the other and at times both, some
// times in all, with pauses up to this.
func (w *world) killing(t *testing.T, times int, pause time.Duration, parts []part) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	killer.Go(func() { w.kill(ctx, t, times, pause) })
	runAll(t, parts)
	cancel()
	killer.Wait()
}

// kill kills replicas and starts them again until the context ends.
func (w *world) kill(ctx context.Context, t *testing.T, times int, pause time.Duration) {
	for n := range times {
		select {
		case <-ctx.Done():
			t.Logf("%d kills", n)
			return
		case <-time.After(time.Duration(w.below(int(pause)))):
		}
		victims := w.replicas[n%2 : n%2+1]
		if w.chance(4) {
			victims = w.replicas
		}
		for _, c := range victims {
			if err := c.Kill(); err != nil {
				t.Errorf("kill: %v", err)
			}
		}
		for _, c := range victims {
			if err := c.Start(context.WithoutCancel(ctx)); err != nil {
				t.Errorf("start again: %v", err)
			}
		}
	}
	t.Logf("%d kills", times)
}

package sticky_test

import (
	"context"
	"sync"
	"testing"
	"time"
)

// killing runs cases while replicas of the controller end as in a crash, one after the other and at times both, some
// times in all, with pauses up to this.
func (f *fixture) killing(t *testing.T, times int, pause time.Duration, parts []part) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	killer.Go(func() { f.kill(ctx, t, times, pause) })
	runAll(t, parts)
	cancel()
	killer.Wait()
}

// kill kills replicas and starts them again until the context ends.
func (f *fixture) kill(ctx context.Context, t *testing.T, times int, pause time.Duration) {
	t.Helper()
	for n := range times {
		select {
		case <-ctx.Done():
			t.Logf("%d kills", n)
			return
		case <-time.After(time.Duration(f.below(int(pause)))):
		}
		victims := f.replicas[n%2 : n%2+1]
		if f.chance(4) {
			victims = f.replicas
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

package leadership

import (
	"context"
	"time"
)

// readyPoll is the interval in which a component checks whether the lists were received.
const readyPoll = 100 * time.Millisecond

// AwaitReady waits until the replica is ready. It returns false if the context ends first.
func AwaitReady(ctx context.Context, ready func() error) bool {
	if ready() == nil {
		return ctx.Err() == nil
	}
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
			if ready() == nil {
				return true
			}
		}
	}
}

// Every calls f now and then at each interval until the context ends.
func Every(ctx context.Context, interval time.Duration, f func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		f()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

package store

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/limiter"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// A pool with hundreds of writes waiting does not keep another's waiting: they take turns at the API server.
func TestHotPoolDoesNotStarveOthers(t *testing.T) {
	t.Parallel()
	const places, hot, cold = 4, 150, 8
	tap, held := &intercept.Tap{}, intercept.NewGate()
	c := connect(t, tap)
	c.limiter = limiter.New(places)
	tap.On(intercept.Writes, held.Hold)
	addr := subnet()
	var mu sync.Mutex
	var order []string // pools in the order in which their writes were stored
	var wg sync.WaitGroup
	start := func(pool string, from, n, waits int) {
		for i := range n {
			wg.Go(func() {
				l := available(addr(from + i))
				l.Pool = pool
				if _, err := c.Write(t.Context(), l); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, pool)
			})
		}
		controlplane.Until(t, "all have come to the limiter", func() bool {
			taken, waiting := c.limiter.Busy()
			return taken == places && waiting == waits
		})
	}
	start("hot", 1, hot, hot-places)
	start("cold", 200, cold, hot-places+cold)
	if s := c.Stats(); s.InFlight != places || s.Waiting != hot+cold-places {
		t.Errorf("stats %+v", s)
	}
	held.Open()
	wg.Wait()
	// Turn by turn: each write of the cold pool comes after at most one more of the hot one, apart from
	// those that were in flight and the places that finish out of order.
	var last int
	for i, pool := range order {
		if pool == "cold" {
			last = i
		}
	}
	if limit := 2*cold + 3*places; last > limit {
		t.Errorf("the last write of the cold pool came as number %d of %d, want at most %d", last, len(order), limit)
	}
	if s := c.Stats(); s.InFlight != 0 || s.Waiting != 0 || slices.Contains(order, "") {
		t.Errorf("left: %+v", s)
	}
}

// The backlog is what waits, or what the API server asked for.
func TestBacklog(t *testing.T) {
	t.Parallel()
	c := connect(t, nil)
	if b := c.Backlog(); b != 0 {
		t.Errorf("idle: %s", b)
	}
	c.counts.throttle(time.Minute)
	if b := c.Backlog(); b < 50*time.Second || b > time.Minute {
		t.Errorf("told to come in a minute: %s", b)
	}
}

// What the client counts: conflicts, and how often the API server was too busy.
func TestStats(t *testing.T) {
	t.Parallel()
	tap := &intercept.Tap{}
	c := connect(t, tap)
	a := subnet()(1)
	write(t, c, available(a))
	if _, err := c.Write(t.Context(), available(a)); err == nil {
		t.Error("created twice")
	}
	busy := tap.On(intercept.Writes, intercept.Answer(429, metav1.StatusReasonTooManyRequests, 0))
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := c.Write(ctx, available(subnet()(2))); done <- err }()
	controlplane.Until(t, "it was turned away", func() bool { return c.Stats().Throttled > 0 })
	leave()
	if err := <-done; err == nil {
		t.Error("stored although it was turned away")
	}
	busy()
	lost := tap.On(intercept.Writes, intercept.Answer(500, metav1.StatusReasonInternalError, 0))
	_, _ = c.Write(t.Context(), available(subnet()(3)))
	lost()
	if s := c.Stats(); s.Conflicts != 1 || s.Throttled != 1 || s.Unknown != 1 {
		t.Errorf("%+v", s)
	}
}

// Stages are told to the observer in their order, and the feed counts what it began.
func TestObserver(t *testing.T) {
	t.Parallel()
	c := connectTo(t, config(t, nil), index.New())
	var mu sync.Mutex
	var got []Stage
	c.Observe(func(_ context.Context, s Stage) func(error) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, s)
		return func(error) {}
	})
	f := NewFeed(c)
	start(t, f)
	l := write(t, c, available(subnet()(1)))
	read(t, c, l.Addr)
	if want := []Stage{StageQueue, StageWrite, StageRead}; !slices.Equal(got, want) {
		t.Errorf("stages %v, want %v", got, want)
	}
	controlplane.Until(t, "the feed watches", f.Watching)
	if s := f.Stats(); s.Lists != 1 || s.Watches != 1 || s.Idle < 0 || s.Idle > time.Minute {
		t.Errorf("%+v", s)
	}
}

// A write keeps its place until the watch has delivered it: where the watch lags behind, no more than those that fit
// are stored and not confirmed, and the others wait.
func TestPlaceIsKeptUntilTheWatchDelivers(t *testing.T) {
	t.Parallel()
	const places = 2
	tap, held, addr := &intercept.Tap{}, intercept.NewGate(), subnet()
	tap.On(watches, held.HoldStream)
	c, f := feeding(t, tap)
	c.limiter, c.lag = limiter.New(places), time.Minute
	<-held.Arrived()
	controlplane.Until(t, "the feed watches", f.Watching)
	for i := range places {
		write(t, c, available(addr(i+1)))
	}
	if s := c.Stats(); s.InFlight != places {
		t.Errorf("%d of %d places are taken while the watch has not delivered what was written", s.InFlight, places)
	}
	held.Open()
	controlplane.Until(t, "the watch delivers, and the places are free", func() bool { return c.Stats().InFlight == 0 })
}

// Where the watch is silent for longer, places come free all the same.
func TestPlaceComesFreeWithoutTheWatch(t *testing.T) {
	t.Parallel()
	tap, held, addr := &intercept.Tap{}, intercept.NewGate(), subnet()
	tap.On(watches, held.HoldStream)
	c, f := feeding(t, tap)
	c.limiter = limiter.New(1)
	<-held.Arrived()
	controlplane.Until(t, "the feed watches", f.Watching)
	for i := range 3 {
		write(t, c, available(addr(i+1)))
	}
}

package limiter

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// apiServer stores one write after the other. Its time, and that of everybody here, is virtual.
type apiServer struct {
	mu    sync.Mutex
	free  time.Time
	write time.Duration
	busy  atomic.Int64 // writes so far
}

// store waits in the queue of the API server, and for the write.
func (a *apiServer) store() {
	a.mu.Lock()
	now := time.Now()
	if a.free.Before(now) {
		a.free = now
	}
	a.free = a.free.Add(a.write)
	until := a.free
	a.mu.Unlock()
	a.busy.Add(1)
	pass(until.Sub(now))
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// Times of the clients: a plugin gives up after ten seconds, which it does not tell; a replica ends every request after
// fifteen; and a kubelet tries again later and later.
const (
	pluginTime  = 10 * time.Second
	requestTime = 15 * time.Second
	lastBackoff = 16 * time.Second
)

// fixture is a limiter in front of an API server, and what its clients met with.
type fixture struct {
	limiter *Limiter
	server  *apiServer
	// told: the plugins tell how long they wait.
	told bool

	answered, refused, late, wasted atomic.Int64
}

// request is one try of a plugin. stored says whether it was written, in time whether the plugin was still there.
func (f *fixture) request(ctx context.Context, class Class, key string) (stored, inTime bool) {
	limit := requestTime
	if f.told {
		limit = pluginTime
	}
	began := time.Now()
	ctx, end := context.WithTimeout(ctx, limit)
	defer end()
	defer time.AfterFunc(pluginTime, end).Stop() // its connection is closed
	leave, err := f.limiter.Enter(ctx, class, key)
	if err != nil {
		if errors.Is(err, ErrOverloaded) {
			f.refused.Add(1)
		} else {
			f.late.Add(1)
		}
		return false, false
	}
	f.server.store()
	leave()
	inTime = time.Since(began) < pluginTime
	if !inTime {
		f.wasted.Add(1)
	}
	return true, inTime
}

// pod is started by its kubelet, however often that takes, until the test ends.
func (f *fixture) pod(ctx context.Context, key string) {
	for backoff := time.Second; ctx.Err() == nil; backoff = min(2*backoff, lastBackoff) {
		held, inTime := f.request(ctx, Take, key)
		if inTime {
			f.answered.Add(1)
			return
		}
		for held && ctx.Err() == nil { // the DEL of a sandbox that failed
			gone, _ := f.request(ctx, GiveBack, key)
			if held = !gone; held {
				pass(backoff)
			}
		}
		pass(backoff/2 + rand.N(backoff))
	}
}

// Three times what the API server stores, for minutes, by clients who give up, delete and come back: as many pods as
// ever get their address meanwhile, next to nothing is written for those who have gone, and soon after the excess has
// ended all have theirs.
func TestGoodputUnderOverload(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		times float64
		told  bool
	}{
		"just saturated":                   {1, false},
		"twice":                            {2, false},
		"three times":                      {3, false},
		"three times, by plugins who tell": {3, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const rate, length, places = 50, 150 * time.Second, 13 // a write takes 260 ms in a full limiter
				f := &fixture{limiter: New(places), server: &apiServer{write: time.Second / rate}, told: c.told}
				pods := int(c.times * rate * length.Seconds())
				began := time.Now()
				soon := time.Duration(float64(pods)/rate*float64(time.Second)) - length + length/2
				ctx, end := context.WithTimeout(t.Context(), length+soon)
				defer end()
				var all sync.WaitGroup
				for n := range pods {
					all.Go(func() {
						pass(time.Duration(float64(n) / (c.times * rate) * float64(time.Second)))
						f.pod(ctx, string(rune('a'+n%7)))
					})
				}
				const warm = 10 * time.Second
				pass(warm)
				before := f.answered.Load()
				pass(length - warm)
				meanwhile := float64(f.answered.Load()-before) / (length - warm).Seconds()
				all.Wait()
				rest := time.Since(began) - length
				t.Logf("%d pods: %.1f a second during the excess, the last %s after it; %d refusals, %d left, %d of "+
					"%d writes for those who had gone",
					pods, meanwhile, rest.Round(time.Second), f.refused.Load(), f.late.Load(), f.wasted.Load(),
					f.server.busy.Load())
				if meanwhile < 0.8*rate {
					t.Errorf("%.1f pods a second got an address, want 80 %% of %d", meanwhile, rate)
				}
				if n := f.answered.Load(); n != int64(pods) {
					t.Errorf("%s after the excess %d of %d pods have an address", soon, n, pods)
				}
				if f.wasted.Load()*100 > f.server.busy.Load() {
					t.Errorf("%d of %d writes were for those who had gone, want one in a hundred", f.wasted.Load(),
						f.server.busy.Load())
				}
				if !idle(f.limiter) {
					t.Errorf("left: %+v", f.limiter)
				}
			})
		})
	}
}

// Where writes get slower by a factor of ten from one moment to the next, and back, the limiter follows.
func TestPaceChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{limiter: New(13), server: &apiServer{write: 10 * time.Millisecond}}
		var all sync.WaitGroup
		for n := range 6000 {
			all.Go(func() {
				pass(time.Duration(n) * 10 * time.Millisecond)
				f.pod(t.Context(), "a")
			})
		}
		pace := func(d time.Duration) { f.server.mu.Lock(); f.server.write = d; f.server.mu.Unlock() }
		pass(10 * time.Second)
		pace(200 * time.Millisecond)
		pass(20 * time.Second)
		pace(10 * time.Millisecond)
		all.Wait()
		t.Logf("%d refusals, %d left, %d of %d writes for those who had gone", f.refused.Load(), f.late.Load(),
			f.wasted.Load(), f.server.busy.Load())
		if f.wasted.Load()*20 > f.server.busy.Load() {
			t.Errorf("%d of %d writes were for those who had gone, want one in twenty", f.wasted.Load(),
				f.server.busy.Load())
		}
	})
}

// A limiter that was stuck for long, and is idle then, lets in those whose time is short again: what it measured
// is old.
func TestIdleLimiterForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(2)
		leave, err := g.Enter(t.Context(), Take, "a")
		if err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		leave()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := enter(ctx, g, "a"); !errors.Is(err, ErrOverloaded) {
			t.Errorf("work that takes ten seconds was begun for one who leaves in three: %v", err)
		}
		pass(oldAfter)
		if err := enter(ctx, g, "a"); err != nil {
			t.Error(err)
		}
	})
}

// What gives back goes first, and what takes is not starved by it.
func TestGiveBackGoesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		if err := enter(t.Context(), g, "a"); err != nil {
			t.Fatal(err)
		}
		var order []byte
		var mu sync.Mutex
		wait := func(class Class, name byte) {
			go func() {
				if _, err := g.Enter(t.Context(), class, "a"); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
			}()
			synctest.Wait()
		}
		for range 2 {
			wait(Take, 't')
		}
		for range 8 {
			wait(GiveBack, 'g')
		}
		for range 11 {
			g.leave()
			synctest.Wait()
		}
		if got, want := string(order), "gggtgggtgg"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if !idle(g) {
			t.Errorf("left: %+v", g)
		}
	})
}

// The backlog is what waits, at the pace of the last ones.
func TestBacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(4)
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				leave, err := g.Enter(t.Context(), Take, "a")
				if err != nil {
					t.Error(err)
				}
				pass(3 * time.Second)
				leave()
			})
		}
		pass(4 * time.Second)
		if b := g.Backlog(); b != 3*time.Second {
			t.Errorf("as many as go at once, three seconds each: %s", b)
		}
		all.Wait()
		if b := g.Backlog(); b != 0 {
			t.Errorf("idle: %s", b)
		}
	})
}

// Who waited elsewhere before he came waits so much less for a place, and how many can come at once follows the pace.
func TestLateAndRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(2)
		if n := g.Room(); n < 1<<20 {
			t.Errorf("room for %d where no pace was measured", n)
		}
		leave, err := g.Enter(t.Context(), Take, "a")
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		leave()
		if n := g.Room(); n != 8 {
			t.Errorf("room for %d, want two a second for four seconds", n)
		}
		for range 2 {
			if err := enter(t.Context(), g, "a"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if err := enter(Late(ctx, 3*time.Second), g, "a"); !errors.Is(err, ErrOverloaded) ||
			time.Since(began) > time.Second {
			t.Errorf("one who is three seconds late has waited for %s: %v", time.Since(began), err)
		}
	})
}

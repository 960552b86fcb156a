package limiter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// enter is Enter of who takes something and gives the place back by leave.
func enter(ctx context.Context, g *Limiter, key string) error {
	_, err := g.Enter(ctx, Take, key)
	return err
}

func idle(g *Limiter) bool {
	taken, waiting := g.Busy()
	for class := range g.lines {
		if l := &g.lines[class]; len(l.queues) != 0 || len(l.turn) != 0 {
			return false
		}
	}
	return taken == 0 && waiting == 0
}

// Pools take turns, however many requests one of them has waiting.
func TestLimiterIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		if err := enter(t.Context(), g, "a"); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		for _, w := range []string{"a1", "a2", "a3", "b1", "a4", "c1", "b2"} {
			go func() {
				if err := enter(t.Context(), g, w[:1]); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, w)
				mu.Unlock()
			}()
			synctest.Wait() // it stands in the queue
		}
		for range 8 {
			g.leave()
			synctest.Wait()
		}
		want := []string{"a1", "b1", "c1", "a2", "b2", "a3", "a4"}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if !idle(g) {
			t.Errorf("left: %+v", g)
		}
	})
}

// Who waits no longer than its deadline leaves nothing behind, and who comes too late does not start.
func TestLimiterDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		if err := enter(t.Context(), g, "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := enter(ctx, g, "a"); !errors.Is(err, ErrOverloaded) || time.Since(began) != time.Second-leastTime {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		pass(2 * leastTime) // at the very moment of the deadline either answer is right
		if _, waiting := g.Busy(); waiting > 0 {
			t.Errorf("left: %+v", g)
		}
		g.leave()
		if err := enter(ctx, g, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a place for one that is over: %v", err)
		}
		if !idle(g) {
			t.Errorf("left: %+v", g)
		}
	})
}

// A place that comes at the moment of the deadline is used by the next, never lost, and never starts a
// write whose caller has gone.
func TestLimiterPlaceAndDeadlineAtOnce(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			g := New(1)
			if err := enter(t.Context(), g, "a"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			result, next := make(chan error, 1), make(chan error, 1)
			go func() { result <- enter(ctx, g, "a") }()
			synctest.Wait()
			go func() { next <- enter(t.Context(), g, "b") }()
			synctest.Wait()
			cancel()
			g.leave()
			if err := <-result; !errors.Is(err, context.Canceled) {
				t.Fatalf("%v, want that it was canceled", err)
			}
			if err := <-next; err != nil {
				t.Fatal(err)
			}
			g.leave()
			if !idle(g) {
				t.Fatalf("left: %+v", g)
			}
		})
	}
}

// Whatever happens in whatever order: never more holders than places, nobody waits while a place is
// free, and in the end all places are free.
func TestLimiterModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		places := rapid.IntRange(1, 3).Draw(rt, "places")
		steps := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 60).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			g := New(places)
			type waiter struct {
				cancel context.CancelFunc
				done   chan error
			}
			var waiting []waiter
			holders := 0
			settle := func() {
				synctest.Wait()
				waiting = slices.DeleteFunc(waiting, func(w waiter) bool {
					select {
					case err := <-w.done:
						if err == nil {
							holders++
						}
						w.cancel()
						return true
					default:
						return false
					}
				})
				if holders > places || holders != g.taken {
					t.Fatalf("%d of %d places held, %d taken", holders, places, g.taken)
				}
				if g.taken < places && len(waiting) > 0 {
					t.Fatalf("%d wait while %d places are free", len(waiting), places-g.taken)
				}
			}
			for _, s := range steps {
				switch {
				case s < 5:
					ctx, cancel := context.WithCancel(t.Context())
					w := waiter{cancel, make(chan error, 1)}
					waiting = append(waiting, w)
					go func() { w.done <- enter(ctx, g, fmt.Sprint(s%3)) }()
				case s < 8 && holders > 0:
					holders--
					g.leave()
				case len(waiting) > 0:
					waiting[s%len(waiting)].cancel()
				}
				settle()
			}
			for holders > 0 || len(waiting) > 0 {
				if holders > 0 {
					holders--
					g.leave()
				}
				settle()
			}
			if !idle(g) {
				t.Fatalf("left: %+v", g)
			}
		})
	})
}

// The same under real concurrency.
func TestLimiterStress(t *testing.T) {
	const places = 4
	g := New(places)
	var inside, most atomic.Int64
	var all sync.WaitGroup
	for worker := range 32 {
		all.Go(func() {
			for range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Duration(rand.IntN(200))*time.Microsecond, cancel)
				if enter(ctx, g, fmt.Sprint(worker%5)) == nil {
					n := inside.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					inside.Add(-1)
					g.leave()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if most.Load() > places {
		t.Errorf("%d inside at once, want at most %d", most.Load(), places)
	}
	if !idle(g) {
		t.Errorf("left: %+v", g)
	}
}

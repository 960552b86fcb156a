package index

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestWaitSeen(t *testing.T) {
	for name, reach := range map[string]func(x *Index, version uint64){
		"event":    func(x *Index, v uint64) { x.Feed.Watched(leased("10.0.0.9", "a", v)) },
		"delete":   func(x *Index, v uint64) { x.Feed.WatchedDelete(ip("10.0.0.9"), v) },
		"bookmark": func(x *Index, v uint64) { x.Feed.Reached(v) },
		"list":     func(x *Index, v uint64) { x.Feed.Replace(nil, v) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := New()
				x.Feed.Reached(1)
				if err := x.Feed.WaitSeen(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				wait := func(ctx context.Context, version uint64) chan error {
					result := make(chan error, 1)
					go func() { result <- x.Feed.WaitSeen(ctx, version) }()
					return result
				}
				expect := func(of string, result chan error, done bool, want error) {
					t.Helper()
					synctest.Wait()
					select {
					case err := <-result:
						if !done || !errors.Is(err, want) {
							t.Errorf("%s: %v", of, err)
						}
					default:
						if done {
							t.Errorf("%s still waits", of)
						}
					}
				}
				two, three, five := wait(t.Context(), 2), wait(t.Context(), 3), wait(t.Context(), 5)
				ctx, cancel := context.WithCancel(t.Context())
				gone := wait(ctx, 3)
				expect("3, before it is reached", three, false, nil)
				cancel()
				expect("who went away", gone, true, context.Canceled)
				reach(x, 3)
				expect("2", two, true, nil)
				expect("3", three, true, nil)
				expect("5, at 3", five, false, nil)
				x.Feed.Reached(9)
				expect("5, at 9", five, true, nil)
				x.Feed.Reached(8)
				if x.Feed.Seen() != 9 || len(x.core.state.Progress.Waiters) > 0 {
					t.Errorf("seen %d, %d waiters", x.Feed.Seen(), len(x.core.state.Progress.Waiters))
				}
			})
		})
	}
}

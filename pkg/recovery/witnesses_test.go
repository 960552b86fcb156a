package recovery

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
)

// TestWitnesses: a replica that has just started gives nothing new until each of the others has said what it has seen,
// or has said nothing for long; and waits for nobody who is gone.
func TestWitnesses(t *testing.T) {
	type told struct {
		w    Witness
		seen bool
		err  error
	}
	const present = 100 // the version that the store has, and the index has seen
	for name, c := range map[string]struct {
		// others tell this after a time since the start, each.
		others map[string]func(time.Duration) told
		// from and to bound the time until new addresses are given.
		from, to time.Duration
		// unknown: the Leases cannot be read.
		unknown bool
	}{
		"alone":                   {nil, 0, time.Second, false},
		"nobody knows the others": {nil, ipam.ReturnTime, ipam.ReturnTime + time.Second, true},
		"one as far": {map[string]func(time.Duration) told{
			"http://a": func(time.Duration) told { return told{Witness{Version: present}, true, nil} },
		}, 0, time.Second, false},
		"one that is gone": {map[string]func(time.Duration) told{
			"http://a": func(time.Duration) told { return told{} },
		}, 0, time.Second, false},
		"one that is silent": {map[string]func(time.Duration) told{
			"http://a": func(time.Duration) told { return told{err: errors.New("silent")} },
		}, silenceTime, silenceTime + time.Second, false},
		"one that is in doubt for a while": {map[string]func(time.Duration) told{
			"http://a": func(since time.Duration) told {
				return told{Witness{Version: present - 1, Doubtful: since < 7*time.Second}, true, nil}
			},
			"http://b": func(time.Duration) told { return told{} },
		}, 7 * time.Second, 8 * time.Second, false},
		"one that is in doubt for ever": {map[string]func(time.Duration) told{
			"http://a": func(time.Duration) told { return told{Witness{Doubtful: true}, true, nil} },
		}, ipam.ReturnTime, ipam.ReturnTime + time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, x := time.Now(), index.New()
				x.Feed.ResetTo(nil, present)
				x.Feed.Returned()
				w := NewWitnesses(WitnessesConfig{
					Others: func() (urls []string, known bool) {
						for url := range c.others {
							urls = append(urls, url)
						}
						return urls, !c.unknown && time.Since(began) > 50*time.Millisecond
					},
					Ask: func(_ context.Context, url string) (Witness, bool, error) {
						a := c.others[url](time.Since(began))
						return a.w, a.seen, a.err
					},
					Index: x, Synced: func() bool { return true }, Log: slog.New(slog.DiscardHandler),
				})
				if w.Told() {
					t.Error("all is told before anybody is asked")
				}
				if err := w.Run(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); !w.Told() || took < c.from || took > c.to {
					t.Errorf("all is told (%t) after %s, want between %s and %s", w.Told(), took, c.from, c.to)
				}
			})
		})
	}
}

// TestWitnessOfARestore: another replica has seen more than the store has now, and the leases are read anew. One that
// is only ahead of this replica's watch shows nothing.
func TestWitnessOfARestore(t *testing.T) {
	r := newReplica(t)
	newest, err := r.leases.Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		seen uint64
		want uint32
	}{{newest, 0}, {newest + 1<<40, 1}} {
		w := NewWitnesses(WitnessesConfig{
			Others: func() ([]string, bool) { return []string{"http://a"}, true },
			Ask: func(context.Context, string) (Witness, bool, error) {
				return Witness{Version: c.seen}, true, nil
			},
			Index: r.index, Leases: r.leases, Synced: func() bool { return true }, Log: slog.New(slog.DiscardHandler),
		})
		if err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.index.Feed.Epoch(); got != c.want || r.index.Feed.Returning() != (c.want > 0) {
			t.Errorf("one has seen version %d: %d restores are noticed, want %d", c.seen, got, c.want)
		}
	}
}

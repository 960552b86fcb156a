package recovery

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/store"
)

const (
	// witnessTime bounds one question to another replica, and witnessEvery is the interval in which those are asked
	// again that have not said enough.
	witnessTime, witnessEvery = time.Second, 200 * time.Millisecond
	// silenceTime is the time for which a replica is waited for that may be there and says nothing.
	silenceTime = 5 * time.Second
)

// Witness is what another replica has seen of the API server's store.
type Witness struct {
	// Version is the newest.
	Version uint64
	// Doubtful reports whether the replica is still checking if the store was restored to an older state, or has not
	// yet written the lost objects again.
	Doubtful bool
	// PutBack is when it was noticed last that the store was put back, by the API server's time; zero for never.
	PutBack time.Time
}

// Witnesses finds out, once after the start, whether the store was put back to an older state before this replica began
// to watch it. The store itself does not tell: a copy of it agrees with itself. Replicas that ran before know. Until
// they have told, this one gives no new addresses. It waits for nobody who is gone.
type Witnesses struct {
	WitnessesConfig
	told atomic.Bool
}

// WitnessesConfig has the settings of Witnesses.
type WitnessesConfig struct {
	// Others returns the URLs of the other replicas, also of those that may be gone; known is false until the list has
	// come.
	Others func() (urls []string, known bool)
	// Ask asks one of them. seen is false if nobody there can have seen anything; the error says that somebody may be
	// there who does not answer.
	Ask    func(ctx context.Context, url string) (w Witness, seen bool, err error)
	Index  *index.Index
	Leases *store.Client
	// Synced reports whether the index has a full list.
	Synced func() bool
	Log    *slog.Logger
}

// NewWitnesses returns witnesses that have told nothing yet: the index gives no new addresses.
func NewWitnesses(c WitnessesConfig) *Witnesses {
	c.Index.Feed.SetComparing(true)
	return &Witnesses{WitnessesConfig: c}
}

// Told reports whether each of the other replicas has been asked once.
func (w *Witnesses) Told() bool { return w.told.Load() }

// Run asks until all have said enough, or were waited for long enough.
func (w *Witnesses) Run(ctx context.Context) error {
	tick := time.NewTicker(witnessEvery)
	defer tick.Stop()
	var synced, began time.Time
	for ; ; w.next(ctx, tick) {
		urls, known := w.Others()
		switch {
		case ctx.Err() != nil:
			return nil
		case !w.Synced():
			continue
		case synced.IsZero():
			synced = time.Now()
		}
		switch {
		case !known && time.Since(synced) < ipam.ReturnTime:
			continue
		case !known:
			w.Log.Warn("the Leases of other replicas cannot be read: none is asked whether the store was put back")
		case began.IsZero():
			began = time.Now()
		}
		found, err := w.ask(ctx, urls)
		switch {
		case found.putBack > 0:
			epoch := w.Index.Feed.Epoch()
			w.Log.Warn("the store was put back before this replica began to watch it; the leases are read anew",
				"error", w.Leases.PutBack(found.putBack, found.newest))
			for w.Index.Feed.Epoch() == epoch && ctx.Err() == nil {
				w.next(ctx, tick)
			}
		case err != nil, found.silent && time.Since(began) < silenceTime,
			found.doubtful && time.Since(began) < ipam.ReturnTime:
			w.told.Store(err == nil)
			continue
		}
		w.Index.Feed.SetComparing(false)
		w.told.Store(true)
		return nil
	}
}

func (w *Witnesses) next(ctx context.Context, tick *time.Ticker) {
	select {
	case <-ctx.Done():
	case <-tick.C:
	}
}

// findings sums up the answers of the other replicas.
type findings struct {
	// putBack is the newest version that one of them has seen, if the store has only newest; else 0.
	putBack, newest  uint64
	doubtful, silent bool
}

// ask asks all at once. The error says that the API server did not tell which version its store has.
func (w *Witnesses) ask(ctx context.Context, urls []string) (f findings, err error) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	var versions []uint64
	for _, url := range urls {
		asking.Go(func() {
			limited, cancel := context.WithTimeout(ctx, witnessTime)
			defer cancel()
			one, seen, err := w.Ask(limited, url)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				f.silent = true
			case seen:
				if !one.PutBack.IsZero() {
					w.Leases.Learn(one.PutBack)
				}
				versions, f.doubtful = append(versions, one.Version), f.doubtful || one.Doubtful
			}
		})
	}
	asking.Wait()
	if len(versions) == 0 || slices.Max(versions) <= w.Index.Feed.Seen() {
		return f, nil
	}
	// The others may just be ahead. What they have seen before this read the store still has, unless it was put back.
	if f.newest, err = w.Leases.Newest(ctx); err == nil && slices.Max(versions) > f.newest {
		f.putBack = slices.Max(versions)
	}
	return f, err
}

package leadership

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Terms holds the terms in which this replica leads. The leader's tasks are components that run in every term, or join
// the present one. They end with the term, while the replica continues to answer requests.
type Terms struct {
	log *slog.Logger

	components []func(context.Context) error // not changed once a term may begin

	mu   sync.Mutex
	term context.Context // the last one, which may have ended
	// leading is full during a term, so that terms do not overlap. It is not a mutex, because virtual time
	// (testing/synctest) does not advance while a goroutine waits for a mutex.
	leading chan struct{}
}

// NewTerms returns the terms of a replica that does not lead yet.
func NewTerms(log *slog.Logger) *Terms { return &Terms{log: log} }

// turn returns the channel that is full during a term.
func (l *Terms) turn() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leading == nil {
		l.leading = make(chan struct{}, 1)
	}
	return l.leading
}

// Metric returns a gauge that is 1 while this replica leads.
func (l *Terms) Metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "bcsnet_leader", Help: "1 while this replica leads.",
	}, func() float64 {
		if l.Leading() {
			return 1
		}
		return 0
	})
}

// OnTerm registers a component to run in every term, until the term's context ends. A component that fails before that
// ends the term: another replica may succeed.
func (l *Terms) OnTerm(start func(context.Context) error) { l.components = append(l.components, start) }

// Leading reports whether this replica leads.
func (l *Terms) Leading() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term != nil && l.term.Err() == nil
}

// Join returns a context that also ends with the present term; false without a term.
func (l *Terms) Join(ctx context.Context) (context.Context, context.CancelFunc, bool) {
	l.mu.Lock()
	term := l.term
	l.mu.Unlock()
	if term == nil || term.Err() != nil {
		return ctx, nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(term, cancel)
	return ctx, func() { unhook(); cancel() }, true
}

// Lead runs the components for one term, and returns after the context has ended and all have returned. resign ends the
// term from within.
func (l *Terms) Lead(ctx context.Context, resign context.CancelFunc) {
	turn := l.turn()
	turn <- struct{}{}
	defer func() { <-turn }()
	if ctx.Err() != nil {
		return
	}
	l.set(ctx)
	l.log.Info("leading")
	defer l.log.Info("no longer leading")
	var running sync.WaitGroup
	for _, run := range l.components {
		running.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				l.log.Error("a part of the leader failed; another replica may lead", "error", err)
				resign()
			}
		})
	}
	<-ctx.Done()
	running.Wait()
}

func (l *Terms) set(term context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = term
}

// ended returns after the present term, if any, has ended.
func (l *Terms) ended() {
	turn := l.turn()
	turn <- struct{}{} // only the wait for it matters
	<-turn
}

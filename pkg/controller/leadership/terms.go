package leadership

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Terms holds when this replica leads, from term to term. What only the leader does runs as a part of each
// term, or joins the present one; it ends with the term, while the replica goes on answering requests.
type Terms struct {
	log *slog.Logger

	parts []func(context.Context) error // not changed once a term may begin

	mu   sync.Mutex
	term context.Context // the last one, which may have ended
	// leading is full during a term: one comes after the other. No mutex, for in virtual time (testing/synctest) nothing
	// happens while somebody waits for one.
	leading chan struct{}
}

// NewTerms returns those of a replica that does not lead yet.
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

// Metric shows whether this replica leads.
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

// OnTerm has a part run in every term, until the term's context ends. One that ends earlier with an error ends the
// term: another replica may fare better.
func (l *Terms) OnTerm(start func(context.Context) error) { l.parts = append(l.parts, start) }

// Leading reports whether this replica leads.
func (l *Terms) Leading() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term != nil && l.term.Err() == nil
}

// Join returns a context that ends with the present term, too. It is false when there is none.
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

// Lead runs the parts for one term, and returns when the context has ended and all have returned. resign ends
// the term from within.
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
	for _, part := range l.parts {
		running.Go(func() {
			if err := part(ctx); err != nil && ctx.Err() == nil {
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

// ended returns when no term is under way.
func (l *Terms) ended() {
	turn := l.turn()
	turn <- struct{}{} // to have got it is all that was wanted
	<-turn
}

package leadership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/store"
)

const (
	// healthEvery is the interval of the checks.
	healthEvery = time.Second
	// probeIdle is the time without a read after which a replica probes the API server; probeTime bounds the probe.
	probeIdle, probeTime = 2 * time.Second, 3 * time.Second
	// failedProbes is the number of failed probes in a row that mean trouble. hangingChecks is the same for checks that
	// find a write without an answer for writeHangs. A single failure may be the fault of this process: it was stopped
	// for a while.
	failedProbes, hangingChecks = 2, 2
	writeHangs                  = 5 * time.Second
)

// Health decides whether this replica could decide a request. It does not prevent any request: it makes /readyz fail,
// and ends the term of a leader in trouble.
type Health struct {
	leases *store.Client
	feed   *store.Feed
	// others reports whether another replica could lead.
	others func() bool
	log    *slog.Logger

	mu      sync.Mutex
	failed  int   // probes in a row
	why     error // the error of the last probe
	hanging int   // checks in a row
	trouble error
}

// Err returns the reason why this replica can decide nothing at present; nil if it can. It only affects /readyz, not
// requests.
func (h *Health) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trouble
}

// Run checks until the context ends.
func (h *Health) Run(ctx context.Context) error {
	var probing sync.WaitGroup
	defer probing.Wait()
	probing.Go(func() { Every(ctx, healthEvery, func() { h.probe(ctx) }) })
	Every(ctx, healthEvery, h.assess)
	return nil
}

func (h *Health) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	err := h.leases.Probe(ctx, probeIdle)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.failed = 0
		return
	}
	h.failed++
	h.why = err
}

func (h *Health) assess() {
	silent, unanswered := h.feed.Silent(), h.leases.Unanswered()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hanging++; unanswered < writeHangs {
		h.hanging = 0
	}
	var trouble error
	switch {
	case h.failed >= failedProbes:
		trouble = fmt.Errorf("the API server does not answer: %w", h.why)
	case h.hanging >= hangingChecks:
		trouble = fmt.Errorf("the API server has not said for %s what became of a write", unanswered.Round(time.Second))
	case silent >= store.SilentWatches && !failpoint.Broken("readyz"):
		trouble = fmt.Errorf("%d watches of the addresses in a row did not deliver what was written", silent)
	}
	switch {
	case trouble != nil && h.trouble == nil:
		h.log.Warn("this replica can decide nothing", "reason", trouble)
	case trouble == nil && h.trouble != nil:
		h.log.Info("this replica can decide again")
	}
	h.trouble = trouble
}

// resign runs in every term. It fails, which ends the term, if this replica can decide nothing and another one might.
func (h *Health) resign(ctx context.Context) (err error) {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := h.Err(); err != nil && h.others() && !failpoint.Broken("handover") {
			return errors.Join(errors.New("the leader is in trouble"), err)
		}
	}
}

// recovered returns when this replica can decide again, when there is no other replica, or after a while, because one
// of them has to lead.
func (h *Health) recovered(ctx context.Context, after time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	AwaitReady(ctx, func() error {
		if !h.others() {
			return nil
		}
		return h.Err()
	})
}

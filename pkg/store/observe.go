package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Stage is a part of a request whose time is measured.
type Stage string

// Stages, in display order. An allocation goes through StageEnding before StageDecide.
const (
	// StageLock: waiting for another request of the same interface.
	StageLock Stage = "lock"
	// StagePod: finding the pod, in the cache or by one read.
	StagePod Stage = "pod"
	// StageDecide: picking addresses, in memory.
	StageDecide Stage = "decide"
	// StageEnding: waiting for a pod of the same app that is being deleted and has an address.
	StageEnding Stage = "ending"
	// StageQueue: waiting for a place among the writes in flight.
	StageQueue Stage = "queue"
	// StageRead: one read of one lease from the API server.
	StageRead Stage = "read"
	// StageWrite: one write, from its sending to its answer.
	StageWrite Stage = "write"
	// StageConfirm: waiting until the own watch delivers the write, which shows how far the watch lags.
	StageConfirm Stage = "confirm"
)

// Stages returns all stages.
func Stages() []Stage {
	return []Stage{StageLock, StagePod, StageDecide, StageEnding, StageQueue, StageRead, StageWrite, StageConfirm}
}

// Observer is called when a stage begins. The returned function is called when the stage ends, with the error if there
// is one. It is called in every request and must not block.
type Observer func(ctx context.Context, stage Stage) (end func(error))

// Observe sets the observer. It must be called before the client is used.
func (c *Client) Observe(o Observer) { c.observer = o }

// Begin calls the observer, if there is one, at the beginning of a stage.
func (c *Client) Begin(ctx context.Context, stage Stage) (end func(error)) {
	if c.observer == nil {
		return func(error) {}
	}
	return c.observer(ctx, stage)
}

// Stats are the counters of a client, and its current load.
type Stats struct {
	// Writes counts the sent writes, Conflicts the writes that met another writer, Unknown the writes with unknown
	// outcome. Throttled counts how often the API server rejected a write for a while. Refused counts the writes that
	// were not sent, because they could not be done in time.
	Writes, Conflicts, Unknown, Throttled, Refused uint64
	// InFlight and Waiting are the current numbers of writes.
	InFlight, Waiting int
}

// counts are shared by a client and its dry-run twin.
type counts struct {
	writes, conflicts, unknown, throttled, refused atomic.Uint64
	answering                                      answering
	// answered is the newest version that any write got.
	answered atomic.Uint64
	// noticed is the time at which a restore of the store was last noticed; nil for never. forgetful reports whether
	// nobody here had noticed it before another party proved it.
	noticed   atomic.Pointer[time.Time]
	forgetful atomic.Bool
	// paused is the time until which the API server accepts no writes, in Unix nanoseconds.
	paused atomic.Int64
}

// Stats returns the counters.
func (c *Client) Stats() Stats {
	n := c.counts
	s := Stats{Writes: n.writes.Load(), Conflicts: n.conflicts.Load(), Unknown: n.unknown.Load(),
		Throttled: n.throttled.Load(), Refused: n.refused.Load()}
	s.InFlight, s.Waiting = c.limiter.Busy()
	return s
}

// Backlog estimates the time for which a new write would wait before it is sent: the time for the writes before it, at
// the current pace, and the pause that the API server requested. It returns zero if the write would not wait.
func (c *Client) Backlog() time.Duration {
	return max(c.limiter.Backlog(), time.Until(time.Unix(0, c.counts.paused.Load())), 0)
}

// Room estimates the number of simultaneous new writes that can begin in time, at the current pace.
func (c *Client) Room() int { return c.limiter.Room() }

// failed counts a write that did not succeed.
func (n *counts) failed(err error) {
	switch {
	case errors.Is(err, ErrConflict):
		n.conflicts.Add(1)
	case errors.Is(err, ErrUnknown):
		n.unknown.Add(1)
	}
}

// throttle records that the API server accepts no writes for a while.
func (n *counts) throttle(d time.Duration) {
	n.answering.answered()
	n.throttled.Add(1)
	n.paused.Store(time.Now().Add(d).UnixNano())
}

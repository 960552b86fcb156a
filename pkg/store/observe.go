package store

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Stage is a part of a request on which time goes.
type Stage string

// Stages, in the order in which they are shown. An allocation comes through StageEnding before StageDecide.
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
	// StageConfirm: waiting for the own watch to deliver the write, which is how far the watch lags behind.
	StageConfirm Stage = "confirm"
)

// Stages returns all stages.
func Stages() []Stage {
	return []Stage{StageLock, StagePod, StageDecide, StageEnding, StageQueue, StageRead, StageWrite, StageConfirm}
}

// Observer is called when a stage begins; what it returns is called when the stage ends, with the error if there is
// one. It is on the path of every request and must not wait.
type Observer func(ctx context.Context, stage Stage) (end func(error))

// Observe sets the observer. Call it before the client is used.
func (c *Client) Observe(o Observer) { c.observer = o }

// Begin calls the observer, if there is one, as a stage begins.
func (c *Client) Begin(ctx context.Context, stage Stage) (end func(error)) {
	if c.observer == nil {
		return func(error) {}
	}
	return c.observer(ctx, stage)
}

// Stats are what a client has counted since it was made, and how busy it is.
type Stats struct {
	// Writes are all that were sent, Conflicts those that met another writer, Unknown those of unknown outcome.
	// Throttled is how often the API server turned a write away for a while; Refused are those that were not sent,
	// because they could not be done in time.
	Writes, Conflicts, Unknown, Throttled, Refused uint64
	// InFlight and Waiting are the writes of this moment.
	InFlight, Waiting int
}

// counts are shared by a client and its dry twin.
type counts struct {
	writes, conflicts, unknown, throttled, refused atomic.Uint64
	answering                                      answering
	// answered is the newest version that a write got.
	answered atomic.Uint64
	// noticed is when it was noticed last that the store was put back; nil for never. forgetful: nobody had noticed
	// before somebody else showed it.
	noticed   atomic.Pointer[time.Time]
	forgetful atomic.Bool
	// paused is until when the API server wants no writes, in Unix nanoseconds.
	paused atomic.Int64
}

// Stats reads the counts.
func (c *Client) Stats() Stats {
	n := c.counts
	s := Stats{Writes: n.writes.Load(), Conflicts: n.conflicts.Load(), Unknown: n.unknown.Load(),
		Throttled: n.throttled.Load(), Refused: n.refused.Load()}
	s.InFlight, s.Waiting = c.limiter.Busy()
	return s
}

// Backlog returns about how long a write would wait now before it is sent: those before it, at the pace of the
// last ones, and what the API server asked for. Zero when it would not.
func (c *Client) Backlog() time.Duration {
	return max(c.limiter.Backlog(), time.Until(time.Unix(0, c.counts.paused.Load())), 0)
}

// Room returns how many writes that come at once can be begun in time, at the pace of the last ones.
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

// throttle records that the API server wants no write for a while.
func (n *counts) throttle(d time.Duration) {
	n.answering.answered()
	n.throttled.Add(1)
	n.paused.Store(time.Now().Add(d).UnixNano())
}

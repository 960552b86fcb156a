package store

import (
	"context"
	"slices"
	"sync"
)

// gate bounds how many writes are in flight and serves who waits fairly: the queues of the keys (pools)
// take turns, first come first served within one. What waits is bounded by its deadline alone.
type gate struct {
	mu     sync.Mutex
	places int
	free   int
	queues map[string][]chan struct{}
	turn   []string // keys with a queue, the next one first
}

func newGate(n int) *gate { return &gate{places: n, free: n, queues: map[string][]chan struct{}{}} }

// acquire waits for a place; it returns the context's error when that comes first.
func (g *gate) acquire(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return nil
	}
	ready := make(chan struct{})
	if len(g.queues[key]) == 0 {
		g.turn = append(g.turn, key)
	}
	g.queues[key] = append(g.queues[key], ready)
	g.mu.Unlock()
	select {
	case <-ready:
		if err := ctx.Err(); err != nil { // both came at once
			g.release()
			return err
		}
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	at := slices.Index(g.queues[key], ready)
	if at >= 0 {
		g.queues[key] = slices.Delete(g.queues[key], at, at+1)
		if len(g.queues[key]) == 0 {
			delete(g.queues, key)
			g.turn = slices.DeleteFunc(g.turn, func(k string) bool { return k == key })
		}
	}
	g.mu.Unlock()
	if at < 0 { // the place came at the same moment
		g.release()
	}
	return ctx.Err()
}

// release gives a place back, to the next in turn if anybody waits.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.turn) == 0 {
		g.free++
		return
	}
	key := g.turn[0]
	g.turn = g.turn[1:]
	q := g.queues[key]
	close(q[0])
	if q = q[1:]; len(q) > 0 {
		g.queues[key] = q
		g.turn = append(g.turn, key)
	} else {
		delete(g.queues, key)
	}
}

// busy is how many places are taken and how many wait for one.
func (g *gate) busy() (taken, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, q := range g.queues {
		waiting += len(q)
	}
	return g.places - g.free, waiting
}

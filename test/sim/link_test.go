package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bcsnet/bcsnet/test/sim/apiserver"
)

// link is the way of one process to the API server, and what goes wrong on it. Each request is carried there by itself:
// a caller that goes does not call it back.
type link struct {
	world *fixture
	name  string

	mu      sync.Mutex
	dead    bool     // the process was killed: nothing of it reaches anybody any more
	epoch   int      // counts the cuts of all connections
	streams []stream // in the order of their beginning
	nth     map[string]int
	// Until when requests, answers, or the events of a resource are held back; "" is for all resources.
	requests, answers time.Time
	events            map[string]time.Time
	reads             map[string]time.Time // lists and watches
	slow              time.Duration        // longer each way
}

func newLink(f *fixture, name string) *link {
	return &link{
		world: f, name: name, nth: map[string]int{}, events: map[string]time.Time{}, reads: map[string]time.Time{},
	}
}

var (
	errCut     = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errKilled  = errors.New("the process was killed")
)

// stream is a watch.
type stream interface{ Break(err error) }

// arrival is what comes back.
type arrival struct {
	resp *http.Response
	err  error
}

// RoundTrip sends a request, and returns its answer or that the caller has gone.
func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close() // it is read
	}
	back := make(chan arrival, 1)
	l.world.under.Go(func() { l.carry(r, body, back) })
	select {
	case a := <-back:
		return a.resp, a.err
	case <-r.Context().Done():
		l.world.under.Go(func() { // nobody reads it
			if a := <-back; a.resp != nil {
				_ = a.resp.Body.Close()
			}
		})
		return nil, r.Context().Err()
	}
}

// carry takes a request to the API server and its answer back.
func (l *link) carry(r *http.Request, body []byte, back chan<- arrival) {
	key := about(r, body)
	rng := draw(l.world.plan.Seed, l.name, key, l.count(key))
	epoch, err := l.began()
	there, home, lost := delay(rng), delay(rng), rng.IntN(2) == 0
	if err != nil {
		back <- arrival{err: err}
		return
	}
	pass(there, l.extra, func() time.Time { return later(l.requests, l.reads[collection(r)]) }, l)
	if lost && l.broken(epoch) != nil { // what is cut on its way may have arrived
		back <- arrival{err: l.broken(epoch)}
		return
	}
	if l.killed() { // sent by the process before it ended, or not
		if lost {
			back <- arrival{err: errKilled}
			return
		}
	}
	resp, err := l.world.api(r, body, rng, l.lag(r, epoch))
	if err != nil {
		back <- arrival{err: err}
		return
	}
	if s, is := resp.Body.(stream); is && !l.keep(epoch, s) {
		s.Break(errCut) // already
	}
	pass(home, l.extra, func() time.Time { return l.answers }, l)
	if err := l.broken(epoch); err != nil {
		_ = resp.Body.Close()
		back <- arrival{err: err}
		return
	}
	back <- arrival{resp: resp}
}

// about names a request by what it asks for. That others are sent before it or after it in the same moment changes
// nothing of how long it takes.
func about(r *http.Request, body []byte) string {
	query := r.URL.Query()
	for _, part := range []string{"timeout", "timeoutSeconds", "resourceVersion", "continue"} {
		query.Del(part)
	}
	key := r.Method + " " + r.URL.Path + "?" + query.Encode()
	if r.Method != http.MethodPost {
		return key
	}
	var made struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(body, &made) // what is no object has no name
	return key + " " + made.Metadata.Name
}

// pass waits for a delay, and for what holds things back.
func pass(d time.Duration, extra func() time.Duration, held func() time.Time, l *link) {
	wait(d + extra())
	for {
		l.mu.Lock()
		left := time.Until(held())
		dead := l.dead
		l.mu.Unlock()
		if left <= 0 || dead {
			return
		}
		wait(left + d) // each by itself, in an order that comes again
	}
}

// wait lets virtual time pass.
func wait(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

func (l *link) count(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nth[key]++
	return l.nth[key]
}

func (l *link) extra() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slow
}

func (l *link) began() (epoch int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return 0, errKilled
	}
	return l.epoch, nil
}

func (l *link) killed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// broken is why a connection of an epoch is no more.
func (l *link) broken(epoch int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.dead:
		return errKilled
	case l.epoch != epoch:
		return errCut
	default:
		return nil
	}
}

// keep takes note of a watch, which ends when its connection is cut.
func (l *link) keep(epoch int, s stream) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead || l.epoch != epoch {
		return false
	}
	l.streams = append(l.streams, s)
	return true
}

// cut ends all connections.
func (l *link) cut() {
	l.mu.Lock()
	l.epoch++
	all := l.streams
	l.streams = nil
	l.mu.Unlock()
	for _, s := range all {
		s.Break(errCut)
	}
}

// kill ends the process at this end.
func (l *link) kill() {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	l.cut()
}

// hold holds something back for a time.
func (l *link) hold(what *time.Time, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*what = time.Now().Add(d)
}

func (l *link) holdEvents(resource string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events[resource] = time.Now().Add(d)
}

// holdReads holds back whoever lists a resource of all namespaces, or begins to watch it.
func (l *link) holdReads(resource string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads[resource] = time.Now().Add(d)
}

// collection is the resource of a list or a watch of all namespaces; "" for any other request.
func collection(r *http.Request) string {
	parts := strings.Split(r.URL.Path, "/")
	if r.Method != http.MethodGet || len(parts) != 4 || parts[1] != "api" {
		return ""
	}
	return parts[3]
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (l *link) setSlow(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = d
}

// lag delays the events of a watch.
func (l *link) lag(r *http.Request, epoch int) apiserver.Lag {
	if !strings.Contains(r.URL.RawQuery, "watch=") {
		return nil
	}
	heard := map[string]int{} // by object; the API server tells one event after the other
	return func(resource, key string) time.Duration {
		heard[key]++
		rng := draw(l.world.plan.Seed, l.name, epoch, resource, key, heard[key])
		l.mu.Lock()
		defer l.mu.Unlock()
		alone := delay(rng)
		d := alone + l.slow
		for _, which := range []string{"", resource} {
			if held := time.Until(l.events[which]); held > 0 {
				d = max(d, held+alone)
			}
		}
		return d
	}
}

// api has the API server serve what has arrived.
func (f *fixture) api(
	r *http.Request, body []byte, rng interface{ Float64() float64 }, lag apiserver.Lag,
) (*http.Response, error) {
	f.mu.Lock()
	down, busy := time.Now().Before(f.down), time.Now().Before(f.busy) && rng.Float64() < f.turnedAway
	f.mu.Unlock()
	if down {
		return nil, errRefused
	}
	if lag == nil && !f.paced() {
		return f.server.TooMany(r, 1), nil
	}
	ctx := r.Context()
	if lag == nil {
		ctx = context.WithoutCancel(ctx)
	}
	r = r.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if busy && lag == nil {
		return f.server.TooMany(r, 1), nil
	}
	return f.server.Serve(r, lag), nil
}

// longestQueue is the time for which a request waits at an API server that has too many; it refuses what would wait for
// longer.
const longestQueue = 5 * time.Second

// paced waits for the turn of a request while the API server has too many. It is false when there are far too many.
func (f *fixture) paced() bool {
	f.mu.Lock()
	now := time.Now()
	if !now.Before(f.overloaded) {
		f.mu.Unlock()
		return true
	}
	if f.turn.Before(now) {
		f.turn = now
	}
	left := f.turn.Sub(now)
	if left < longestQueue {
		f.turn = f.turn.Add(f.pace)
	}
	f.mu.Unlock()
	wait(left)
	return left < longestQueue
}

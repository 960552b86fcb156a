package ui

import (
	"context"
	"net/http"
	"runtime"
	"time"
)

// topic is a followed page in one language.
type topic struct {
	stop    context.CancelFunc
	ended   chan struct{}
	viewers map[*viewer]bool
	last    *frame
}

// key names a topic.
func key(page string, r *http.Request) string { return language(r) + " " + page }

// join adds a viewer to a page. The first viewer starts the topic.
func (l *live) join(page string, v *viewer, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[key(page, r)]
	if t == nil {
		ctx, stop := context.WithCancel(l.context)
		t = &topic{stop: stop, ended: make(chan struct{}), viewers: map[*viewer]bool{}}
		l.topics[key(page, r)] = t
		go func() {
			defer close(t.ended)
			l.run(ctx, page, t, r)
		}()
	}
	t.viewers[v] = true
	if t.last != nil {
		v.take(page, t.last)
	}
}

// leave removes a viewer from a page. The last one stops the topic.
func (l *live) leave(page string, v *viewer, r *http.Request) {
	l.mu.Lock()
	t := l.topics[key(page, r)]
	delete(t.viewers, v)
	last := len(t.viewers) == 0
	if last {
		delete(l.topics, key(page, r))
		t.stop()
	}
	l.mu.Unlock()
	if last {
		<-t.ended
	}
}

// run makes the page of a topic again whenever an object on it changes.
func (l *live) run(ctx context.Context, page string, t *topic, by *http.Request) {
	s := l.server
	kind, r, err := s.kinds.find(page, by)
	if err != nil {
		l.send(page, t, &frame{problem: err.Error()})
		return
	}
	r = r.WithContext(ctx)
	watching := newWatching(ctx, l.visitor.app)
	defer watching.stop()
	p, known := s.recent.take(l.visitor, r)
	again := time.NewTimer(0) // at the beginning, and after an error
	defer again.Stop()
	for known || watching.changed(ctx, again.C) {
		again.Stop()
		s.busy.Add(1)
		began := time.Now()
		if !known {
			done := s.turn(ctx)
			began = time.Now()
			p, err = s.read(ctx, r, kind, l.visitor, watching.due())
			done()
		}
		known = false
		switch {
		case ctx.Err() != nil:
		case err != nil:
			text, _, _ := problem(s.app, err)
			l.send(page, t, &frame{problem: text})
			again.Reset(retry) // it may be back
		default:
			s.recent.keep(l.visitor, r, p)
			l.send(page, t, &frame{sections: p.Sections})
			watching.from(p)
		}
		took := time.Since(began) * time.Duration(s.busy.Load())
		pause := min(atLeast, max(frameEvery, took*share/time.Duration(runtime.GOMAXPROCS(0))))
		if err != nil { // it took long to learn that, and it may be over
			pause = min(pause, retry)
		}
		rest := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-rest.C:
		}
		rest.Stop()
		s.busy.Add(-1)
	}
}

// send passes a frame to all viewers of a page, unless they have the same one.
func (l *live) send(page string, t *topic, f *frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.last != nil && t.last.same(f) {
		return
	}
	t.last = f
	for v := range t.viewers {
		v.take(page, f)
	}
}

// turn waits until no other followed page is made, so that the time of this one is its own. It does not wait long: a
// page that the API server does not answer must not hold up the others. done ends the turn.
func (s *Server) turn(ctx context.Context) (done func()) {
	late := time.NewTimer(turn)
	defer late.Stop()
	select {
	case s.making <- struct{}{}:
		return func() { <-s.making }
	case <-late.C:
	case <-ctx.Done():
	}
	return func() {}
}

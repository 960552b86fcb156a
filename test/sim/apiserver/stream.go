package apiserver

import (
	"io"
	"sync"
	"time"
)

// stream is the body of a watch. Sent data can be read after its delay, in order.
type stream struct {
	closed func() // called once, when the reader closes the stream

	mu    sync.Mutex
	some  *sync.Cond
	ready []byte
	last  time.Time // when the last sent data can be read
	err   error     // what a reader gets after all data
	once  sync.Once
}

func newStream() *stream {
	s := &stream{}
	s.some = sync.NewCond(&s.mu)
	return s
}

func (s *stream) send(frame []byte, late time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	due := now.Add(late)
	if !due.After(s.last) && s.last.After(now) {
		due = s.last.Add(1)
	}
	if !due.After(now) {
		s.put(frame)
		return
	}
	s.last = due
	time.AfterFunc(due.Sub(now), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.put(frame)
	})
}

func (s *stream) put(frame []byte) {
	if s.err == nil {
		s.ready = append(s.ready, frame...)
		s.some.Broadcast()
	}
}

// end ends the stream in an orderly way after the data that was sent.
func (s *stream) end() { s.fail(io.EOF) }

// fail ends the stream.
func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		s.some.Broadcast()
	}
}

// Read waits for what comes.
func (s *stream) Read(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ready) == 0 && s.err == nil {
		s.some.Wait()
	}
	if len(s.ready) == 0 {
		return 0, s.err
	}
	n = copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// Close ends the watch.
func (s *stream) Close() error {
	s.Break(io.ErrClosedPipe)
	return nil
}

// Break ends the watch like the end of its connection: the reader gets an error.
func (s *stream) Break(err error) {
	s.fail(err)
	s.once.Do(func() {
		if s.closed != nil {
			s.closed()
		}
	})
}

package apiserver

import (
	"io"
	"maps"
)

// Copy is the complete state of a server at one moment.
type Copy struct {
	version uint64
	objects map[*kind]map[string]*object
}

// Version returns the version of the last write in the copy.
func (c Copy) Version() uint64 { return c.version }

// Copy takes a copy.
func (s *Server) Copy() Copy {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Copy{s.version, map[*kind]map[string]*object{}}
	for _, k := range s.kinds {
		c.objects[k] = maps.Clone(k.objects)
	}
	return c
}

// Restore restores a copy, as a restore of etcd does: versions continue from those of the copy. All watches end,
// because a real API server is stopped for that.
func (s *Server) Restore(c Copy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.first, s.events = c.version, c.version, nil
	for k, objects := range c.objects {
		k.objects = maps.Clone(objects)
	}
	s.cut()
}

// Cut ends all watches, like a crash of the API server.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut()
}

func (s *Server) cut() {
	for _, w := range s.watchers {
		w.stream.fail(io.ErrUnexpectedEOF)
	}
	s.watchers = nil
}

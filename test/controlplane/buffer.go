package controlplane

import (
	"slices"
	"strings"
	"sync"
)

// Buffer is a log that can be read while it is written.
type Buffer struct {
	mu  sync.Mutex
	all strings.Builder
}

// Write adds to the log.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

// String returns the log so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// Line returns the first line of the log that contains all the parts; empty if there is none.
func (b *Buffer) Line(parts ...string) string {
	for l := range strings.Lines(b.String()) {
		missing := slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(l, p) })
		if !missing {
			return l
		}
	}
	return ""
}

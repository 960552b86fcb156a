package workload

import (
	"slices"
	"sync"
)

const (
	// readingFrom is the length from which on the parsed value of an annotation is cached: a shorter one is parsed
	// faster than it is found.
	readingFrom = 64
	// maxReadings bounds the cached values, in bytes. If there are more, all are parsed again.
	maxReadings = 1 << 20
)

// readings caches the parsed forms of long annotation values, since hundreds of pods of a workload have the same. The
// zero value is ready for use, and nil caches nothing.
type readings struct {
	mu    sync.Mutex
	known map[reading]parsedValue
	bytes int
}

type reading struct{ key, value string }

// of returns the parsed value of an annotation. Invalid values are not cached.
func (r *readings) of(a Annotation, value string) (parsedValue, error) {
	if r == nil || len(value) < readingFrom {
		return a.read(value)
	}
	this := reading{a.Key, value}
	r.mu.Lock()
	m, ok := r.known[this]
	r.mu.Unlock()
	if ok {
		m.sets = slices.Clone(m.sets)
		return m, nil
	}
	m, err := a.read(value)
	if err != nil {
		return m, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes += len(value); r.known == nil || r.bytes > maxReadings {
		r.known, r.bytes = map[reading]parsedValue{}, len(value)
	}
	r.known[this] = m
	m.sets = slices.Clone(m.sets)
	return m, nil
}

// Package judge decides from what callers were told and from what the API server has whether the promises about
// addresses were kept: the fault suite and the simulator ask it the same.
package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// maxViolations are kept; the first ones show the most.
const maxViolations = 20

// Verdict collects what was found to be wrong, and counts what was done.
type Verdict struct {
	mu         sync.Mutex
	violations []string
	counts     map[string]int
	broken     chan struct{}
}

// NewVerdict makes an empty one.
func NewVerdict() *Verdict {
	return &Verdict{counts: map[string]int{}, broken: make(chan struct{})}
}

// Wrong notes that a promise was broken.
func (v *Verdict) Wrong(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.violations) == 0 {
		close(v.broken)
	}
	if len(v.violations) < maxViolations {
		v.violations = append(v.violations, fmt.Sprintf(format, args...))
	}
}

// Violations returns the first violations that were noted.
func (v *Verdict) Violations() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.violations)
}

// Broken returns a channel that is closed at the first violation.
func (v *Verdict) Broken() <-chan struct{} { return v.broken }

// Failed reports whether anything was wrong yet.
func (v *Verdict) Failed() bool {
	select {
	case <-v.broken:
		return true
	default:
		return false
	}
}

// Count counts something that was done.
func (v *Verdict) Count(what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counts[what]++
}

// Counts returns a copy of all counts.
func (v *Verdict) Counts() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.counts)
}

// Total sums the counts of a kind, "operation" of "operation ADD" and "operation DEL".
func (v *Verdict) Total(kind string) (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for what, m := range v.counts {
		if strings.HasPrefix(what, kind+" ") {
			n += m
		}
	}
	return n
}

// String lists the counts.
func (v *Verdict) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out strings.Builder
	for _, what := range slices.Sorted(maps.Keys(v.counts)) {
		fmt.Fprintf(&out, "%8d %s\n", v.counts[what], what)
	}
	return out.String()
}

package faults_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// maxViolations are kept; the first ones tell the most.
const maxViolations = 20

// ownFault begins what went wrong with the suite itself, and says nothing of the controller.
const ownFault = "the suite: "

// verdict collects what was found to be wrong, and counts what was done.
type verdict struct {
	mu         sync.Mutex
	violations []string
	counts     map[string]int
	broken     chan struct{} // closed at the first violation
}

func newVerdict() *verdict {
	return &verdict{counts: map[string]int{}, broken: make(chan struct{})}
}

// wrong notes that a promise was broken.
func (v *verdict) wrong(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.violations) == 0 {
		close(v.broken)
	}
	if len(v.violations) < maxViolations {
		v.violations = append(v.violations, fmt.Sprintf(format, args...))
	}
}

func (v *verdict) count(what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counts[what]++
}

// total sums the counts of a kind, "operation" of "operation ADD" and "operation DEL".
func (v *verdict) total(kind string) (n int) {
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
func (v *verdict) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out strings.Builder
	for _, what := range slices.Sorted(maps.Keys(v.counts)) {
		fmt.Fprintf(&out, "%8d %s\n", v.counts[what], what)
	}
	return out.String()
}

package sim_test

import (
	"maps"
	"time"
)

// noteDEL notes that a process answered the DEL of a container.
func (f *fixture) noteDEL(b *sandbox, by string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deleted[b.id] == nil {
		f.deleted[b.id] = map[string]bool{}
	}
	f.deleted[b.id][by] = true
}

// deletedBy are the processes that have answered the DEL of a container.
func (f *fixture) deletedBy(b *sandbox) map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.deleted[b.id])
}

// kubeletGivesUp is by when kubelet gives up a sandbox, and with it an ADD that is on its way.
const kubeletGivesUp = 4 * time.Minute

// overtake has an ADD of a container arrive after its DEL, while its pod is still there.
func (s *slot) overtake(b *sandbox) {
	if b.ahead != 0 || time.Since(*b.started.Load()) > kubeletGivesUp {
		return // it cannot be told from a new one
	}
	for range 2 {
		s.duplicate(b, 0, nil)
	}
	wait(moment(s.rng, 0, 400*time.Millisecond))
}

package sim_test

import (
	"fmt"
	"maps"
	"time"
)

// life is one process of a replica.
type life struct {
	replica string
	number  int
}

func (l life) String() string { return fmt.Sprintf("%s (process %d)", l.replica, l.number) }

// lives are those of all replicas, by their URLs.
func (f *fixture) lives() map[string]life {
	all := map[string]life{}
	for i, r := range f.replicas {
		r.mu.Lock()
		all[f.callers.URLs[i]] = life{r.name, r.life}
		r.mu.Unlock()
	}
	return all
}

// noteDEL notes that a process answered the DEL of a container.
func (f *fixture) noteDEL(b *sandbox, by life) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deleted[b.id] == nil {
		f.deleted[b.id] = map[life]bool{}
	}
	f.deleted[b.id][by] = true
}

// deletedBy are the processes that have answered the DEL of a container.
func (f *fixture) deletedBy(b *sandbox) map[life]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.deleted[b.id])
}

// kubeletGivesUp is by when kubelet gives up a sandbox, and with it an ADD that is on its way.
const kubeletGivesUp = 4 * time.Minute

// overtake has an ADD of a container arrive after its DEL, while its pod is still there.
func (s *slot) overtake(b *sandbox) {
	if b.ahead != 0 || time.Since(b.started) > kubeletGivesUp {
		return // it cannot be told from a new one
	}
	for range 2 {
		s.duplicate(b, 0, nil)
	}
	wait(moment(s.rng, 0, 400*time.Millisecond))
}

package sim_test

import (
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// force deletes a pod by force: its container runs on for a moment, and the next pod of the name begins beside it, on
// the same host. It is false where that cannot be: a pod of a name that keeps its address waits for the one before, and
// a late ADD of a container that names no UID cannot be told from one of the next pod.
func (s *slot) force() bool {
	b := s.sandbox
	if b == nil || s.taken || s.ending != nil || s.sticky() || s.number%2 == 1 || !b.byUID {
		return false
	}
	s.verdict.Count("pod replaced while its container runs")
	s.note("pod %s (%s) is deleted by force, container %.8s runs on with %v", b.pod, b.uid, b.id, b.addrs)
	s.deletePod()
	s.ending, s.ends = b, time.Now().Add(moment(s.rng, 0, 3*time.Second))
	for _, a := range b.addrs {
		s.ledger.Until(a, b.id, s.ends.Add(overdue))
	}
	return true
}

// overdue is how much longer than planned the end of a container may take here, where the slot waits for something
// else. After it, and no sooner, its address may be collected.
const overdue = lease.UsualTermination

// endForced ends the container of a pod that was deleted by force, if the slot has one. del sends its DEL.
func (s *slot) endForced(del func(b *sandbox, from time.Duration)) {
	b := s.ending
	if b == nil {
		return
	}
	s.ending = nil
	from := s.history.Now()
	if late := time.Since(s.ends.Add(overdue)); late > 0 {
		from -= late
		b.over.Store(true)
	} else {
		s.last(b)
	}
	del(b, from)
}

func (s *slot) delNow(b *sandbox, from time.Duration)  { s.DEL(b, s.rng, from) }
func (s *slot) delSoon(b *sandbox, from time.Duration) { s.lateDEL(b, 0, from) }

package sim_test

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/bcsnet/bcsnet/test/judge"
)

// passing is a namespace that is deleted at times, with the pods that are in it.
const passing = "passing"

const namespaces = "/api/v1/namespaces"

// deleteNamespace deletes the namespace: while it goes its pods end, some of them without a DEL. Later it is made anew.
func (f *fixture) deleteNamespace(rng *rand.Rand) {
	its, goOn, ok := f.halt(func(s *slot) bool { return s.namespace == passing })
	if !ok {
		return
	}
	defer goOn()
	f.fault("namespace deleted")
	_, _, _ = f.insist(http.MethodDelete, namespaces+"/"+passing, nil)
	for _, s := range its {
		s.rng = draw(f.plan.Seed, "namespace", s.number, s.steps)
		s.endForced(s.delNow)
		switch {
		case !s.orphan.IsZero():
			s.endOrphan()
		case s.uid != "":
			s.endPod(false)
		}
	}
	_, _, _ = f.insist(http.MethodPatch, namespaces+"/"+passing, object{"metadata": object{"finalizers": nil}})
	wait(moment(rng, 0, 10*time.Second))
	f.makeNamespace()
}

// makeNamespace makes the namespace that passes, or makes it anew when it is about to go. What deletes it has to take
// its finalizer.
func (f *fixture) makeNamespace() {
	_, answer, ok := f.insist(http.MethodGet, namespaces+"/"+passing, nil)
	if !ok {
		return
	}
	if m, _ := answer["metadata"].(map[string]any); m["deletionTimestamp"] != nil {
		_, _, _ = f.insist(http.MethodPatch, namespaces+"/"+passing, object{"metadata": object{"finalizers": nil}})
	}
	_, _, _ = f.insist(http.MethodPost, namespaces,
		object{"metadata": object{"name": passing, "finalizers": []string{"sim/content"}}})
}

// The addresses of a namespace that is no more wait where more than so many would be taken back within a minute.
const (
	brakeCount  = 10
	brakeWindow = time.Minute
)

// loseNamespace has the API server lose a namespace with all its pods, without a DEL of any, and find it again two
// minutes later. By what it says nobody has the addresses; so many at once are believed only when it has the namespace.
func (f *fixture) loseNamespace() {
	lost := map[string]bool{} // containers
	for _, s := range f.slots {
		b := s.sandbox
		if s.namespace != namespace || b == nil || s.taken {
			continue
		}
		s.rng = draw(f.plan.Seed, "lost", s.number)
		s.last(b)
		s.deletePod()
		s.noteChange(b, b.addrs, false, s.history.Now(), judge.Never)
		lost[b.id] = true
	}
	f.fault("namespace lost")
	_, _, _ = f.insist(http.MethodDelete, namespaces+"/"+namespace, nil)
	held := func() (n int) {
		for _, l := range f.active() {
			if lost[l.ContainerID] {
				n++
			}
		}
		return n
	}
	first := held()
	// The first are due after some 50 seconds; a minute later the brake lets more pass.
	for end := time.Now().Add(2 * brakeWindow); time.Now().Before(end) && !f.verdict.Failed(); wait(time.Second) {
		if now := held(); first-now > brakeCount && time.Until(end) > brakeWindow/2 {
			f.verdict.Wrong("%d of %d addresses of namespace %s were taken back, which the API server does not have", first-now,
				first, namespace)
		}
	}
	_, _, _ = f.insist(http.MethodPost, namespaces, object{"metadata": object{"name": namespace}})
}

package sim_test

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// passing is a namespace that is deleted at times, with the pods that are in it.
const passing = "passing"

const namespaces = "/api/v1/namespaces"

// deleteNamespace deletes the namespace: while it goes its pods end, some of them without a DEL. Later it is made anew.
func (w *world) deleteNamespace(rng *rand.Rand) {
	its, goOn, ok := w.halt(func(s *slot) bool { return s.namespace == passing })
	if !ok {
		return
	}
	defer goOn()
	w.fault("namespace deleted")
	_, _, _ = w.insist(http.MethodDelete, namespaces+"/"+passing, nil)
	for _, s := range its {
		s.rng = draw(w.plan.Seed, "namespace", s.number, s.steps)
		switch {
		case !s.orphan.IsZero():
			s.endOrphan()
		case s.uid != "":
			s.endPod(false)
		}
	}
	_, _, _ = w.insist(http.MethodPatch, namespaces+"/"+passing, object{"metadata": object{"finalizers": nil}})
	wait(moment(rng, 0, 10*time.Second))
	w.makeNamespace()
}

// makeNamespace makes the namespace that passes, or makes it anew when it is about to go. What deletes it has to take its finalizer.
func (w *world) makeNamespace() {
	_, answer, ok := w.insist(http.MethodGet, namespaces+"/"+passing, nil)
	if !ok {
		return
	}
	if m, _ := answer["metadata"].(map[string]any); m["deletionTimestamp"] != nil {
		_, _, _ = w.insist(http.MethodPatch, namespaces+"/"+passing, object{"metadata": object{"finalizers": nil}})
	}
	_, _, _ = w.insist(http.MethodPost, namespaces, object{"metadata": object{"name": passing, "finalizers": []string{"sim/content"}}})
}

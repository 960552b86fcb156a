package sim_test

import (
	"net/http"
	"time"

	"github.com/bcsnet/bcsnet/test/judge"
)

// insist repeats something that the API server may not be there for; false when the run ends.
func (f *fixture) insist(method, path string, body any) (code int, answer map[string]any, ok bool) {
	for f.ctx.Err() == nil {
		if code, answer = f.do(method, path, body); code < http.StatusInternalServerError {
			return code, answer, true
		}
		wait(50 * time.Millisecond)
	}
	return code, answer, false
}

// createPod makes the next pod of the slot.
func (s *slot) createPod() bool {
	meta := object{"name": s.name, "namespace": s.namespace, "annotations": s.annotations()}
	code, answer, ok := s.insist(http.MethodPost, s.pods(), object{
		"metadata": meta, "spec": object{"nodeName": node(s.host), "terminationGracePeriodSeconds": 5, "containers": []object{{"name": "c", "image": "c"}}},
	})
	if !ok || code != http.StatusCreated {
		if ok {
			s.verdict.Wrong("the simulator: pod %s cannot be made: %d %v", s.name, code, answer)
		}
		return false
	}
	m, _ := answer["metadata"].(map[string]any)
	s.uid, _ = m["uid"].(string)
	s.created, s.told = time.Now(), nil
	s.verdict.Count("pod created")
	s.note("pod %s (%s) is made on %s", s.name, s.uid, node(s.host))
	return true
}

// report is what a kubelet writes into the status of a pod that runs; it may come late, for some that told nothing yet
// not before the load is over.
func (s *slot) report(b *sandbox) {
	if s.loading() && len(s.told) == 0 && s.rng.IntN(3) == 0 {
		return
	}
	wait(delay(s.rng))
	s.tell(b)
}

// tell writes the addresses of a sandbox into the status of its pod.
func (s *slot) tell(b *sandbox) {
	var ips []object
	for _, a := range b.first() {
		ips = append(ips, object{"ip": a.String()})
	}
	if len(ips) == 0 {
		return
	}
	code, _ := s.do(http.MethodPut, s.pods()+"/"+s.name+"/status", object{
		"metadata": object{"name": s.name, "namespace": s.namespace, "uid": b.uid},
		"status": object{
			"phase": "Running", "startTime": s.created.UTC().Format(time.RFC3339), "hostIP": host(s.host), "hostIPs": []object{{"ip": host(s.host)}},
			"podIP": ips[0]["ip"], "podIPs": ips,
		},
	})
	if code == http.StatusOK {
		s.told = b.addrs
		s.verdict.Count("pod reported")
	}
}

// deletePod takes the pod of the slot away, as at the end of its grace period.
func (s *slot) deletePod() {
	_, _, _ = s.insist(http.MethodDelete, s.pods()+"/"+s.name,
		object{"gracePeriodSeconds": 0, "preconditions": object{"uid": s.uid}})
	s.uid, s.sandbox, s.taken = "", nil, false
}

// endPod ends the pod of a slot: with a DEL before or after the object goes, or without any. A pod whose
// address an operator took has nothing that could be looked at.
func (s *slot) endPod(inOrder bool) {
	b := s.sandbox
	how := s.rng.IntN(100)
	if !inOrder && how >= 45 && how < 55 && s.force() {
		return
	}
	switch {
	case b == nil:
	case s.taken:
		b.over.Store(true)
	default:
		s.last(b)
	}
	from := s.history.Now()
	switch {
	case b == nil:
		s.deletePod()
	case inOrder || how < 55:
		s.DEL(b, s.rng, from)
		if how >= 50 {
			s.overtake(b)
		}
		s.deletePod()
		if how < 5 && b.ahead == 0 { // an ADD that was on its way all the time
			s.duplicate(b, time.Duration(s.rng.IntN(1000))*time.Millisecond, nil)
		}
	case how >= 95 && s.forgetful():
		s.deletePod()
		s.verdict.Count("pod deleted without DEL")
		s.note("container %.8s of %s is forgotten with %v", b.id, b.pod, b.addrs)
		s.noteChange(b, b.addrs, false, from, judge.Never)
	default:
		s.deletePod()
		s.lateDEL(b, time.Duration(s.rng.IntN(3000))*time.Millisecond, from)
	}
}

// forgottenPerMinute are pods that go without any DEL: fewer than the brake of the collection lets pass.
const forgottenPerMinute = 6

// forgetful reports whether one more pod may go without DEL.
func (f *fixture) forgetful() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.forgot > int(forgottenPerMinute*f.history.Now().Minutes()) {
		return false
	}
	f.forgot++
	return true
}

package sim_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/bcsnet/bcsnet/test/judge"
)

// returned is by when every live pod has its address again after the store was put back.
const returned = time.Minute

// putBack puts the API server's store back to a copy that is some seconds old. What the copy does not know goes on:
// pods that are newer run until their kubelets notice, and the pods that have ended since are there again, until they
// are deleted.
func (f *fixture) putBack(rng *rand.Rand) {
	f.lasting.Store(true) // else few pods of the copy are left when it is put back
	defer f.lasting.Store(false)
	then := f.server.Copy()
	if !f.pause(f.load, moment(rng, time.Second, 10*time.Second)) {
		return
	}
	select {
	case f.puttingBack <- struct{}{}:
		defer func() { <-f.puttingBack }()
	default:
		return // two would wait for each other
	}
	defer f.calm()() // until all have returned only the replicas know of the pods that the API server does not
	all, goOn, ok := f.halt(func(*slot) bool { return true })
	if !ok {
		return
	}
	for _, s := range all {
		s.rng = draw(f.plan.Seed, "restore", s.number, s.steps)
		s.endForced(s.delNow)
	}
	killed := f.dies(rng)
	f.fault(fmt.Sprintf("store put back, %d replicas killed", len(killed)))
	away := moment(rng, time.Second, 9*time.Second)
	lost := f.server.Version()
	f.goAway(away)
	for _, r := range killed {
		r.kill()
	}
	f.server.Restore(then)
	f.ledger.PutBack()
	f.mu.Lock()
	f.restored = time.Now().Add(away)
	clear(f.last)
	f.mu.Unlock()
	wait(away)
	f.note("the API server is back with version %d, it had %d", then.Version(), lost)
	for _, r := range killed {
		r.start()
	}
	for _, r := range f.replicas { // a reflector whose requests fail waits for up to half a minute until it tries again
		r.way().holdReads("pods", moment(rng, 0, 20*time.Second))
	}
	f.reconcile(rng)
	goOn()
	f.background.Go(func() { f.catchUp(lost, moment(rng, time.Second, 10*time.Second)) })
	f.awaitReturn()
}

// putBackSince reports whether the store was put back after a moment.
func (f *fixture) putBackSince(began time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.restored.After(began)
}

// dies returns the replicas that are killed while the store is put back: none, one, or all but one. Those that begin
// have to ask the others what they have seen of it. The others know what was given before: their watches have
// delivered it.
func (f *fixture) dies(rng *rand.Rand) (all []*replica) {
	n := rng.IntN(replicas)
	if n == 0 {
		return nil
	}
	wait(moment(rng, slowest, slowest+time.Second))
	for _, i := range rng.Perm(replicas)[:n] {
		all = append(all, f.replicas[i])
	}
	return all
}

// catchUp has versions reach in a time those that were lost: the rest of the cluster writes a hundred times more than
// we do.
func (f *fixture) catchUp(lost uint64, within time.Duration) {
	const steps = 20
	for left := range steps {
		wait(within / steps)
		behind := int(lost) - int(f.server.Version())
		for n := range behind / (steps - left) {
			f.renew(n % hosts)
			wait(time.Microsecond) // that of a renewal is what is written
		}
	}
}

// reconcile does what kubelets and controllers do when the API server knows of other pods than run, and of other pools
// than were asked for. All slots are halted.
func (f *fixture) reconcile(rng *rand.Rand) {
	for _, pool := range []string{"alpha", "beta", "gamma4"} {
		_, _, _ = f.insist(http.MethodPatch, apis+"bcsnetpools/"+pool, object{"spec": object{"cordoned": false}})
	}
	f.makeNamespace()
	_, answer, ok := f.insist(http.MethodGet, "/api/v1/pods", nil)
	if !ok {
		return
	}
	paths := map[string]string{} // of the pods, by UID
	text, _ := json.Marshal(answer)
	var list struct {
		Items []struct {
			Metadata struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
				UID       string `json:"uid"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		f.verdict.Wrong("the simulator: the pods cannot be read: %v", err)
	}
	for _, p := range list.Items {
		paths[p.Metadata.UID] = namespaces + "/" + p.Metadata.Namespace + "/pods/" + p.Metadata.Name
	}
	mine := map[string]bool{}
	for _, s := range f.slots {
		mine[s.uid] = true
		b := s.sandbox
		_, known := paths[s.uid]
		if known {
			s.orphan = time.Time{} // a pod that was deleted by force is there again: its kubelet keeps it
		}
		switch {
		case s.uid == "":
		case !known && (b == nil || s.taken):
			s.deletePod()
		case !known:
			f.verdict.Count("pod orphaned")
			f.note("pod %s (%s) is newer than the copy", s.name, s.uid)
			s.orphan = time.Now().Add(moment(rng, 0, ending))
		case b != nil && !s.taken:
			f.verdict.Count("pod kept")
			s.tell(b)
		}
	}
	for _, p := range list.Items {
		if uid := p.Metadata.UID; !mine[uid] {
			f.verdict.Count("pod back although it has ended")
			_, _, _ = f.insist(http.MethodDelete, paths[uid],
				object{"gracePeriodSeconds": 0, "preconditions": object{"uid": uid}})
		}
	}
}

// awaitReturn waits until every live pod has its address again.
func (f *fixture) awaitReturn() {
	for deadline := time.Now().Add(returned); f.ctx.Err() == nil && !f.verdict.Failed(); wait(200 * time.Millisecond) {
		left := f.ledger.Awaited()
		if len(left) == 0 {
			return
		}
		for a, h := range left {
			live := f.read(a)
			f.ledger.Seen(live)
			if time.Now().After(deadline) && f.ledger.Awaits(a) {
				f.verdict.Wrong("%s did not come back to container %.8s of live pod %s within %s of the restore: it "+
					"is %s, container %.8s of %s (%s), updated %s; history %v",
					a, h.Container, h.Pod, returned, live.State, live.ContainerID, live.Who(), live.PodUID,
					live.Updated, live.History.Entries())
				return
			}
		}
	}
}

// endOrphan ends a pod of which the API server knows nothing, if the slot has one.
func (s *slot) endOrphan() {
	if s.orphan.IsZero() {
		return
	}
	b, from := s.sandbox, s.history.Now()
	if s.taken {
		b.over.Store(true)
	} else {
		s.last(b)
	}
	taken := s.taken
	s.uid, s.sandbox, s.taken, s.orphan = "", nil, false, time.Time{}
	if !taken && s.rng.IntN(2) == 0 && s.forgetful() { // its host has forgotten it
		s.verdict.Count("orphan without DEL")
		s.note("container %.8s of %s is forgotten with %v", b.id, b.pod, b.addrs)
		s.noteChange(b, b.addrs, false, from, judge.Never)
		return
	}
	s.DEL(b, s.rng, from)
}

package sim_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/test/judge"
)

// mischief is one thing that goes wrong at a certain time.
type mischief struct {
	name string
	at   time.Duration
	do   func(*rand.Rand)
}

// mishaps are all of a run, each by itself: which they are does not depend on what comes of them.
func (w *world) mishaps() (all []mischief) {
	for _, r := range w.replicas {
		all = append(all, w.schedule(r.name, 5*time.Second, func(n int) func(*rand.Rand) { return w.disturb(r, n) })...)
	}
	all = append(all, w.schedule("api", 12*time.Second, w.disturbAPI)...)
	all = append(all, w.schedule("node", 15*time.Second, func(int) func(*rand.Rand) { return w.cut })...)
	all = append(all, w.schedule("namespace", 30*time.Second, func(int) func(*rand.Rand) { return w.deleteNamespace })...)
	all = append(all, w.schedule("clocks", 15*time.Second, func(int) func(*rand.Rand) { return w.setClock })...)
	switch {
	case !w.plan.Restores && w.plan.long(): // one that is put back waits until nothing else goes wrong
		all = append(all, w.schedule("pods", time.Minute, func(int) func(*rand.Rand) { return w.stall })...)
	case w.plan.Restores:
		all = append(all, w.schedule("store", 20*time.Second, func(int) func(*rand.Rand) { return w.putBack })...)
	}
	return append(all, w.schedule("operator", 3*time.Second, w.operate)...)
}

// schedule draws when an actor does something, and what.
func (w *world) schedule(actor string, mean time.Duration, do func(n int) func(*rand.Rand)) (all []mischief) {
	at := time.Duration(0)
	for n := range 10_000 {
		rng := draw(w.plan.Seed, actor, n)
		at += time.Duration(float64(mean) * min(rng.ExpFloat64(), 3))
		if at >= w.plan.length() {
			break
		}
		if name := fmt.Sprintf("%s %d", actor, n); w.plan.has(name) {
			all = append(all, mischief{name, at, do(rng.IntN(1000))})
		}
	}
	return all
}

// misbehave has all mishaps happen. Of the replicas one at least is left alone.
func (w *world) misbehave() {
	var running sync.WaitGroup
	for _, m := range w.mishaps() {
		running.Go(func() {
			if !w.pause(w.load, m.at) {
				return
			}
			select {
			case w.mishap <- struct{}{}:
			default:
				return // nothing goes wrong now
			}
			w.note("mishap %s", m.name)
			m.do(draw(w.plan.Seed, m.name, "how"))
			<-w.mishap
		})
	}
	running.Wait()
}

// maxMishaps are more than there ever are at a time.
const maxMishaps = 1000

// calm waits until no mishap but the caller's is under way, and lets none begin until the function that it returns is called.
func (w *world) calm() func() {
	for range maxMishaps - 1 {
		w.mishap <- struct{}{}
	}
	return func() {
		for range maxMishaps - 1 {
			<-w.mishap
		}
	}
}

// moment is a time between two.
func moment(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Int64N(int64(to-from)))
}

// disturb is trouble for one replica.
func (w *world) disturb(r *replica, n int) func(*rand.Rand) {
	crash := func(rng *rand.Rand) {
		if !w.spare(r) {
			return
		}
		w.fault("kill -9")
		r.kill()
		w.pause(w.load, moment(rng, 0, 2*time.Second))
		r.start()
		w.restore(r)
	}
	switch {
	case n < 200:
		return crash
	case n < 300:
		return func(*rand.Rand) {
			if !w.spare(r) {
				return
			}
			w.fault("SIGTERM")
			r.stop()
			r.start()
			w.restore(r)
		}
	case n < 400:
		return func(rng *rand.Rand) { // nothing comes through, longer than its Lease lasts
			w.fault("stopped")
			l, d := r.way(), moment(rng, time.Second, leaseDuration+3*time.Second)
			l.hold(&l.requests, d)
			l.hold(&l.answers, d)
			l.holdEvents("", d)
			wait(d)
		}
	case n < 500:
		return func(*rand.Rand) { w.fault("connections cut"); r.way().cut() }
	case n < 600:
		return func(rng *rand.Rand) {
			w.fault("answers lost")
			l, d := r.way(), moment(rng, time.Second/10, 2*time.Second)
			l.hold(&l.answers, d)
			wait(d)
			l.cut()
		}
	case n < 700:
		return func(rng *rand.Rand) {
			w.fault("requests lost")
			l, d := r.way(), moment(rng, time.Second/10, 4*time.Second)
			l.hold(&l.requests, d)
			wait(d)
			l.cut()
		}
	case n < 800:
		return func(rng *rand.Rand) {
			w.fault("latency")
			l := r.way()
			l.setSlow(moment(rng, 5*time.Millisecond, 200*time.Millisecond))
			wait(moment(rng, time.Second, 5*time.Second))
			l.setSlow(0)
		}
	default:
		return func(rng *rand.Rand) {
			which := []string{"", "bcsnetips", "bcsnetips", "pods", "bcsnetpools", "leases"}[rng.IntN(6)]
			w.fault("watches held back: " + which)
			d := moment(rng, time.Second/2, 8*time.Second)
			if which == "pods" && rng.IntN(2) == 0 { // long enough for two looks of the collector
				d *= 5
			}
			r.way().holdEvents(which, d)
			wait(d)
		}
	}
}

// spare reports whether a replica may go down, and takes note that it does: one at least stays up.
func (w *world) spare(r *replica) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone[r.number] || len(w.gone) >= replicas-1 {
		return false
	}
	w.gone[r.number] = true
	return true
}

// restore takes note that a replica is up again.
func (w *world) restore(r *replica) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.gone, r.number)
}

// disturbAPI is trouble for the API server.
func (w *world) disturbAPI(n int) func(*rand.Rand) {
	switch {
	case n < 300:
		return func(rng *rand.Rand) {
			w.fault("API server killed")
			d := moment(rng, time.Second, 9*time.Second)
			w.goAway(d)
			wait(d)
		}
	case n < 500:
		return func(rng *rand.Rand) {
			w.fault("API server turns requests away")
			d := moment(rng, time.Second, 6*time.Second)
			w.mu.Lock()
			w.busy = time.Now().Add(d)
			w.mu.Unlock()
			wait(d)
		}
	case n < 750:
		return func(rng *rand.Rand) {
			w.fault("overload")
			d := moment(rng, 3*time.Second, 12*time.Second)
			w.mu.Lock()
			w.overloaded, w.pace = time.Now().Add(d), moment(rng, 5*time.Millisecond, 40*time.Millisecond)
			w.mu.Unlock()
			wait(d)
		}
	default:
		return func(rng *rand.Rand) {
			w.fault("versions compacted")
			w.server.Compact(uint64(rng.IntN(20)))
			for _, r := range w.replicas {
				r.way().cut()
			}
		}
	}
}

// goAway has nobody reach the API server for a time.
func (w *world) goAway(d time.Duration) {
	w.mu.Lock()
	w.down = time.Now().Add(d)
	w.mu.Unlock()
	w.server.Cut()
	for _, r := range w.replicas {
		r.way().cut()
	}
}

// operate is an operator at work: hosts are released, pools edited and cordoned.
func (w *world) operate(n int) func(*rand.Rand) {
	edit := func(pool string, spec object) {
		w.do(http.MethodPatch, apis+"bcsnetpools/"+pool, object{"spec": spec})
	}
	size := w.plan.Slots/3 + 2
	switch {
	case n < 200:
		return w.takeHost
	case n < 350:
		return func(rng *rand.Rand) { // as by kubectl
			w.fault("objects of addresses deleted")
			for range 4 {
				a := []string{"10.1.0.%d", "10.3.0.%d", "fd00-0002-0000-0000-0000-0000-0000-00%02x"}[rng.IntN(3)]
				w.do(http.MethodDelete, apis+"bcsnetips/"+fmt.Sprintf(a, 10+rng.IntN(size)), nil)
			}
		}
	case n < 550:
		return func(*rand.Rand) {
			w.fault("pool shrunk")
			edit("alpha", object{"availableIPs": []string{span("10.1.0.10", size-2)}})
		}
	case n < 750:
		return func(*rand.Rand) {
			w.fault("pool grown")
			edit("alpha", object{"availableIPs": []string{span("10.1.0.10", size)}})
		}
	default:
		return func(rng *rand.Rand) {
			pool := []string{"alpha", "beta", "gamma4"}[rng.IntN(3)]
			w.fault("pool cordoned")
			edit(pool, object{"cordoned": true})
			wait(moment(rng, time.Second/2, 2*time.Second))
			_, _, _ = w.insist(http.MethodPatch, apis+"bcsnetpools/"+pool, object{"spec": object{"cordoned": false}})
		}
	}
}

// takeHost releases a host, whose pods are over.
func (w *world) takeHost(rng *rand.Rand) {
	h := rng.IntN(hosts)
	its, goOn, ok := w.halt(func(s *slot) bool { return s.host == h })
	if !ok {
		return
	}
	defer goOn()
	w.fault("host released")
	for _, s := range its {
		s.rng = draw(w.plan.Seed, "release", s.number, s.steps)
		s.endForced(s.delNow)
		if s.sandbox != nil && !s.taken {
			s.last(s.sandbox)
			s.taken, s.kept = true, nil
			s.noteChange(s.sandbox, s.sandbox.addrs, false, s.history.Now(), judge.Never)
		}
	}
	if a, ok := w.ask(rng, http.MethodDelete, "/host/"+host(h), nil, func() bool { return !w.loading() }); ok && a.Code != 0 {
		w.verdict.Wrong("release of host %s is refused: %s: %s", host(h), a.Reason, a.Message)
	}
	w.verdict.Count("operation host release")
}

// stall has no replica hear of pods for a while, as when the API server's cache of them hangs, while some of the pods that it does not
// tell of stay: whoever believes its cache takes them for gone.
func (w *world) stall(rng *rand.Rand) {
	w.fault("no watch of pods delivers")
	d := moment(rng, 30*time.Second, 40*time.Second)
	for _, r := range w.replicas {
		r.way().holdEvents("pods", d)
	}
	early := moment(rng, time.Second, 4*time.Second)
	wait(early)
	w.staying.Add(1)
	wait(d - early)
	w.staying.Add(-1)
}

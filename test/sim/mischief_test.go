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
func (f *fixture) mishaps() (all []mischief) {
	for _, r := range f.replicas {
		all = append(all, f.schedule(r.name, 5*time.Second, func(n int) func(*rand.Rand) { return f.disturb(r, n) })...)
	}
	all = append(all, f.schedule("api", 12*time.Second, f.disturbAPI)...)
	all = append(all, f.schedule("node", 15*time.Second, func(int) func(*rand.Rand) { return f.cut })...)
	all = append(all, f.schedule("namespace", 30*time.Second, func(int) func(*rand.Rand) { return f.deleteNamespace })...)
	all = append(all, f.schedule("clocks", 15*time.Second, func(int) func(*rand.Rand) { return f.setClock })...)
	if f.plan.long() {
		all = append(all, f.schedule("off", 2*time.Minute, func(int) func(*rand.Rand) { return f.powerOff })...)
	}
	switch {
	case !f.plan.Restores && f.plan.long(): // one that is put back waits until nothing else goes wrong
		all = append(all, f.schedule("pods", time.Minute, func(int) func(*rand.Rand) { return f.stall })...)
	case f.plan.Restores:
		all = append(all, f.schedule("store", 20*time.Second, func(int) func(*rand.Rand) { return f.putBack })...)
	}
	return append(all, f.schedule("operator", 3*time.Second, f.operate)...)
}

// schedule draws when an actor does something, and what.
func (f *fixture) schedule(actor string, mean time.Duration, do func(n int) func(*rand.Rand)) (all []mischief) {
	at := time.Duration(0)
	for n := range 10_000 {
		rng := draw(f.plan.Seed, actor, n)
		at += time.Duration(float64(mean) * min(rng.ExpFloat64(), 3))
		if at >= f.plan.length() {
			break
		}
		if name := fmt.Sprintf("%s %d", actor, n); f.plan.has(name) {
			all = append(all, mischief{name, at, do(rng.IntN(1000))})
		}
	}
	return all
}

// misbehave has all mishaps happen. Of the replicas one at least is left alone.
func (f *fixture) misbehave() {
	var running sync.WaitGroup
	for _, m := range f.mishaps() {
		running.Go(func() {
			if !f.pause(f.load, m.at) {
				return
			}
			select {
			case f.mishap <- struct{}{}:
			default:
				return // nothing goes wrong now
			}
			f.note("mishap %s", m.name)
			m.do(draw(f.plan.Seed, m.name, "how"))
			<-f.mishap
		})
	}
	running.Wait()
}

// maxMishaps are more than there ever are at a time.
const maxMishaps = 1000

// calm waits until no mishap but the caller's is under way, and lets none begin until the function that it returns is
// called.
func (f *fixture) calm() func() {
	for range maxMishaps - 1 {
		f.mishap <- struct{}{}
	}
	return func() {
		for range maxMishaps - 1 {
			<-f.mishap
		}
	}
}

// moment is a time between two.
func moment(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Int64N(int64(to-from)))
}

// disturb is trouble for one replica.
func (f *fixture) disturb(r *replica, n int) func(*rand.Rand) {
	crash := func(rng *rand.Rand) {
		if !f.spare(r) {
			return
		}
		f.fault("kill -9")
		r.kill()
		f.pause(f.load, moment(rng, 0, 2*time.Second))
		r.start()
		f.restore(r)
	}
	switch {
	case n < 200:
		return crash
	case n < 300:
		return func(*rand.Rand) {
			if !f.spare(r) {
				return
			}
			f.fault("SIGTERM")
			r.stop()
			r.start()
			f.restore(r)
		}
	case n < 400:
		return func(rng *rand.Rand) { // nothing comes through, longer than its Lease lasts
			f.fault("stopped")
			l, d := r.way(), moment(rng, time.Second, leaseDuration+3*time.Second)
			l.hold(&l.requests, d)
			l.hold(&l.answers, d)
			l.holdEvents("", d)
			wait(d)
		}
	case n < 500:
		return func(*rand.Rand) { f.fault("connections cut"); r.way().cut() }
	case n < 600:
		return func(rng *rand.Rand) {
			f.fault("answers lost")
			l, d := r.way(), moment(rng, time.Second/10, 2*time.Second)
			l.hold(&l.answers, d)
			wait(d)
			l.cut()
		}
	case n < 700:
		return func(rng *rand.Rand) {
			f.fault("requests lost")
			l, d := r.way(), moment(rng, time.Second/10, 4*time.Second)
			l.hold(&l.requests, d)
			wait(d)
			l.cut()
		}
	case n < 800:
		return func(rng *rand.Rand) {
			f.fault("latency")
			l := r.way()
			l.setSlow(moment(rng, 5*time.Millisecond, 200*time.Millisecond))
			wait(moment(rng, time.Second, 5*time.Second))
			l.setSlow(0)
		}
	default:
		return func(rng *rand.Rand) {
			which := []string{"", "bcsnetips", "bcsnetips", "pods", "bcsnetpools", "leases"}[rng.IntN(6)]
			f.fault("watches held back: " + which)
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
func (f *fixture) spare(r *replica) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone[r.number] || len(f.gone) >= replicas-1 {
		return false
	}
	f.gone[r.number] = true
	return true
}

// restore takes note that a replica is up again.
func (f *fixture) restore(r *replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.gone, r.number)
}

// disturbAPI is trouble for the API server.
func (f *fixture) disturbAPI(n int) func(*rand.Rand) {
	switch {
	case n < 300:
		return func(rng *rand.Rand) {
			f.fault("API server killed")
			d := moment(rng, time.Second, 9*time.Second)
			f.goAway(d)
			wait(d)
		}
	case n < 500:
		return func(rng *rand.Rand) {
			f.fault("API server turns requests away")
			d := moment(rng, time.Second, 6*time.Second)
			f.mu.Lock()
			f.busy = time.Now().Add(d)
			f.mu.Unlock()
			wait(d)
		}
	case n < 750:
		return func(rng *rand.Rand) {
			f.fault("overload")
			d := moment(rng, 3*time.Second, 12*time.Second)
			f.mu.Lock()
			f.overloaded, f.pace = time.Now().Add(d), moment(rng, 5*time.Millisecond, 40*time.Millisecond)
			f.mu.Unlock()
			wait(d)
		}
	default:
		return func(rng *rand.Rand) {
			f.fault("versions compacted")
			f.server.Compact(uint64(rng.IntN(20)))
			for _, r := range f.replicas {
				r.way().cut()
			}
		}
	}
}

// goAway has nobody reach the API server for a time.
func (f *fixture) goAway(d time.Duration) {
	f.mu.Lock()
	f.down = time.Now().Add(d)
	f.mu.Unlock()
	f.server.Cut()
	for _, r := range f.replicas {
		r.way().cut()
	}
}

// operate is an operator at work: hosts are released, pools edited and cordoned.
func (f *fixture) operate(n int) func(*rand.Rand) {
	edit := func(pool string, spec object) {
		f.do(http.MethodPatch, apis+"bcsnetpools/"+pool, object{"spec": spec})
	}
	size := f.plan.Slots/3 + 2
	switch {
	case n < 200:
		return f.takeHost
	case n < 350:
		return func(rng *rand.Rand) { // as by kubectl
			f.fault("objects of addresses deleted")
			for range 4 {
				a := []string{"10.1.0.%d", "10.3.0.%d", "fd00-0002-0000-0000-0000-0000-0000-00%02x"}[rng.IntN(3)]
				f.do(http.MethodDelete, apis+"bcsnetips/"+fmt.Sprintf(a, 10+rng.IntN(size)), nil)
			}
		}
	case n < 550:
		return func(*rand.Rand) {
			f.fault("pool shrunk")
			edit("alpha", object{"availableIPs": []string{span("10.1.0.10", size-2)}})
		}
	case n < 750:
		return func(*rand.Rand) {
			f.fault("pool grown")
			edit("alpha", object{"availableIPs": []string{span("10.1.0.10", size)}})
		}
	default:
		return func(rng *rand.Rand) {
			pool := []string{"alpha", "beta", "gamma4"}[rng.IntN(3)]
			f.fault("pool cordoned")
			edit(pool, object{"cordoned": true})
			wait(moment(rng, time.Second/2, 2*time.Second))
			_, _, _ = f.insist(http.MethodPatch, apis+"bcsnetpools/"+pool, object{"spec": object{"cordoned": false}})
		}
	}
}

// takeHost releases a host, whose pods are over.
func (f *fixture) takeHost(rng *rand.Rand) {
	h := rng.IntN(hosts)
	its, goOn, ok := f.halt(func(s *slot) bool { return s.host == h })
	if !ok {
		return
	}
	defer goOn()
	f.fault("host released")
	for _, s := range its {
		s.rng = draw(f.plan.Seed, "release", s.number, s.steps)
		s.endForced(s.delNow)
		if s.sandbox != nil && !s.taken {
			s.last(s.sandbox)
			s.taken, s.kept = true, nil
			s.noteChange(s.sandbox, s.sandbox.addrs, false, s.history.Now(), judge.Never)
		}
	}
	if a, ok := f.ask(rng, http.MethodDelete, "/host/"+host(h), nil, func() bool { return !f.loading() }); ok &&
		a.Code != 0 {
		f.verdict.Wrong("release of host %s is refused: %s: %s", host(h), a.Reason, a.Message)
	}
	f.verdict.Count("operation host release")
}

// stall has no replica hear of pods for a while, as when the API server's cache of them hangs, while some of the pods
// that it does not tell of stay: whoever believes its cache takes them for gone.
func (f *fixture) stall(rng *rand.Rand) {
	f.fault("no watch of pods delivers")
	d := moment(rng, 30*time.Second, 40*time.Second)
	for _, r := range f.replicas {
		r.way().holdEvents("pods", d)
	}
	early := moment(rng, time.Second, 4*time.Second)
	wait(early)
	f.staying.Add(1)
	wait(d - early)
	f.staying.Add(-1)
}

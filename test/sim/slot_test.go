package sim_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/judge"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// slot is a place for a pod on a host, and the kubelet's worker for it. The pods of every other slot follow each
// other under one name, like those of a StatefulSet; the others never come back, like those of a Deployment.
type slot struct {
	*fixture
	number, host int
	name         string
	namespace    string
	steps        int
	// machine is the virtual machine that the pod is of; empty for the pods of the slots themselves.
	machine string
	rng     *rand.Rand // of the step

	// turn is held during every step. No mutex: while somebody waits for one no virtual time passes.
	turn    chan struct{}
	uid     string // of the pod; "" while there is none
	created time.Time
	// told are the addresses in the status of the pod.
	told    []netip.Addr
	sandbox *sandbox
	// taken: an operator took the address away.
	taken bool
	// orphan is until when the containers run of a pod of which the API server, whose store was put back, knows
	// nothing; zero for any other pod.
	orphan time.Time
	// ending is the container of a pod that was deleted by force, while the next pod of its name is there already; it
	// ends by then.
	ending *sandbox
	ends   time.Time
	// kept are the addresses that the pods of a name keep; empty where they keep none.
	kept []netip.Addr
	// refusedSince is when the first of the last sandboxes was refused that all were.
	refusedSince time.Time
	refusals     int
}

func newSlot(f *fixture, i int) *slot {
	s := &slot{
		fixture: f, number: i, host: i % hosts, name: fmt.Sprintf("web-%d", i), namespace: namespace,
		turn: make(chan struct{}, 1),
	}
	if i%9 == 7 {
		s.namespace = passing
	}
	return s
}

// pods is where those of the slot are.
func (s *slot) pods() string { return namespaces + "/" + s.namespace + "/pods" }

// sticky reports whether the pods of the slot keep their addresses.
func (s *slot) sticky() bool { return s.plan.Sticky && s.number%8 == 4 }

func (s *slot) lock()   { s.turn <- struct{}{} }
func (s *slot) unlock() { <-s.turn }

// run lives one pod after the other while there is load. The last pod stays, if it has an address.
func (s *slot) run() {
	for s.loading() {
		// who waits for all slots would wait for one step of each
		for s.halted.Load() && s.pause(s.load, 20*time.Millisecond) {
		}
		s.lock()
		s.steps++
		s.rng = draw(s.plan.Seed, "slot", s.number, s.steps)
		s.step()
		think := time.Duration(s.rng.IntN(60)) * time.Millisecond
		if s.rng.IntN(40) == 0 {
			think = time.Duration(s.rng.IntN(2000)) * time.Millisecond
		}
		s.unlock()
		s.pause(s.load, think)
	}
	s.lock() // the operator may still be at work
	defer s.unlock()
	s.endOrphan()
	s.endForced(s.delSoon)
	if s.uid != "" && (s.sandbox == nil || s.taken) {
		s.endPod(true) // else a late ADD may get an address for a pod from which the operator has just taken one
	}
}

func (s *slot) step() {
	if s.ending != nil && time.Now().After(s.ends) {
		s.endForced(s.delSoon)
	}
	if !s.orphan.IsZero() {
		if time.Now().After(s.orphan) {
			s.endOrphan()
		}
		return
	}
	if s.uid == "" {
		if s.number%2 == 1 {
			s.name = fmt.Sprintf("job-%d-%d", s.number, s.steps)
		}
		if s.createPod() {
			s.begin(s.newSandbox())
		}
		return
	}
	if b := s.sandbox; b != nil && len(s.told) > 0 && !slices.Equal(s.told, b.addrs) {
		s.report(b)
	}
	switch n := s.rng.IntN(100); {
	case s.taken:
		s.endPod(true)
	case s.sandbox == nil:
		s.begin(s.newSandbox())
	case n < 25, s.number%3 == 0 && s.staying.Load() > 0:
		s.repeat()
	case n < 55, s.number%3 == 0 && s.lasting.Load():
		s.restart()
	default:
		s.endPod(false)
	}
}

// note writes down that a container took its addresses, or gave them up.
func (s *slot) noteChange(b *sandbox, addrs []netip.Addr, take bool, from, to time.Duration) {
	for _, a := range addrs {
		s.history.Add(s.number, judge.Change{
			Addr: a.String(), Pod: cmp.Or(b.machine, b.uid), Container: b.id, Take: take, Beside: b.machine != "",
		}, from, to)
	}
}

// begin is the ADD of a new sandbox, often sent twice at once, and sometimes once more at a later time. A sandbox
// without an address by the end of the load is given up, by a DEL as the kubelet does.
func (s *slot) begin(b *sandbox) {
	s.sandbox = b
	served := make(chan []netip.Addr, 1) // what the slot was told; closed when it gave up
	switch n := s.rng.IntN(20); {
	case b.ahead != 0: // then a late one cannot be told from a new one
	case n < 6:
		s.duplicate(b, 0, served)
	case n < 7:
		s.duplicate(b, time.Duration(s.rng.IntN(4000))*time.Millisecond, served)
	}
	from, began := s.history.Now(), time.Now()
	a, ok := s.attach(b, s.insistent)
	if !ok {
		close(served)
		s.giveUp(b)
		return
	}
	if a.Code != 0 {
		close(served)
		s.refuse(b, a)
		return
	}
	s.refusedSince, s.refusals = time.Time{}, 0
	b.addrs = a.Addrs()
	served <- b.addrs
	s.verdict.Count("operation ADD")
	s.note("ADD of container %.8s of %s: %v", b.id, b.pod, b.addrs)
	s.noteChange(b, b.addrs, true, from, s.history.Now())
	s.durable(b, began)
	s.report(b)
}

// durable: the answer is; the objects say so at once.
func (s *slot) durable(b *sandbox, began time.Time) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	unsure := time.Now().Before(down) || s.putBackSince(began)
	if len(b.addrs) == 0 {
		s.verdict.Wrong("ADD of container %.8s of %s was answered without an address", b.id, s.name)
	}
	for _, a := range b.addrs {
		live := s.read(a)
		if _, held := live.From(b.holds); !unsure && !held {
			s.verdict.Wrong("ADD of container %.8s of %s (%s) was answered with %s, and then version %d is %s, "+
				"container %.8s of %s (%s)",
				b.id, s.name, b.uid, a, live.Version, live.State, live.ContainerID, live.Who(), live.PodUID)
			return
		}
		if b.machine != "" {
			s.ledger.HoldBeside(a, b.machine, b.id, live.Version)
		} else {
			s.ledger.Hold(a, s.name, b.id, live.Version)
		}
	}
	if !s.sticky() {
		return
	}
	if len(s.kept) > 0 && !slices.Equal(s.kept, b.addrs) {
		s.verdict.Count("sticky pod moved")
	}
	s.kept = b.addrs
}

// patience is for how long a pod may be refused that lives.
const patience = 10 * time.Second

// refuse gives up a sandbox that is refused for good: a kubelet makes another one. The pod must get its address that
// way, soon.
func (s *slot) refuse(b *sandbox, a plugin.Answer) {
	s.verdict.Count("sandbox refused")
	if s.refusedSince.IsZero() {
		s.refusedSince = time.Now()
	}
	if s.refusals++; s.refusals >= 5 && time.Since(s.refusedSince) > patience {
		s.verdict.Wrong("ADD of live pod %s (%s) is refused again and again, now of container %.8s: %s: %s", s.name,
			s.uid, b.id, a.Reason, a.Message)
	}
	s.giveUp(b)
}

func (s *slot) giveUp(b *sandbox) {
	b.over.Store(true)
	s.sandbox = nil
	s.lateDEL(b, 0, s.history.Now())
}

// duplicate sends the ADD of a sandbox once more, to one replica. While the sandbox has its addresses the
// answer is those.
func (s *slot) duplicate(b *sandbox, after time.Duration, served <-chan []netip.Addr) {
	rng := rand.New(rand.NewPCG(s.rng.Uint64(), 1))
	s.background.Go(func() {
		wait(after)
		from := s.history.Now()
		gone := s.deletedBy(b)
		replica := rng.IntN(replicas)
		a, ok := s.attach(b, func(body any) (plugin.Answer, bool) {
			a, err := s.once(rng, replica, http.MethodPost, "", body)
			return a, err == nil
		})
		if !ok || a.Code != 0 {
			return
		}
		if gone[a.By] {
			s.verdict.Wrong("%s answered the DEL of container %.8s of %s, and then its ADD, which began before: %v",
				a.By, b.id, b.pod, a.Addrs())
		}
		s.verdict.Count("operation duplicate ADD")
		s.note("duplicate ADD of container %.8s of %s: %v", b.id, b.pod, a.Addrs())
		over := b.over.Load()
		s.noteChange(b, a.Addrs(), true, from, s.history.Now())
		if !over {
			addrs, told := <-served
			if told && !slices.Equal(addrs, a.Addrs()) && !b.over.Load() {
				s.verdict.Wrong("container %.8s of %s was told %s by one replica and %s by another", b.id, b.pod, addrs,
					a.Addrs())
			}
			over = !told || !slices.Equal(addrs, a.Addrs())
		}
		if over { // nobody else writes down when this ends
			s.noteChange(b, a.Addrs(), false, from, judge.Never)
		}
	})
}

// insistent sends an ADD until it is answered, or requests are no longer to wait.
func (s *slot) insistent(body any) (plugin.Answer, bool) {
	return s.ask(s.rng, http.MethodPost, "", body, func() bool { return !s.goesOn() })
}

// repeat asks again for what the sandbox has.
func (s *slot) repeat() {
	b := s.sandbox
	a, ok := s.attach(b, s.insistent)
	if ok && a.Reason == ipam.ReasonContainerSuperseded && s.putBackSince(*b.started.Load()) {
		// Of a lease that was created again from the report of its pod it is not known which container has it. A call
		// that began before is refused, and the runtime's next one is served.
		s.verdict.Count("repeated ADD begun anew after a restore")
		b.begin()
		a, ok = s.attach(b, s.insistent)
	}
	switch {
	case !ok:
	case b.ahead != 0 && a.Reason == ipam.ReasonContainerSuperseded:
		// Of a clock that is far ahead counts its bound, which replicas see up to a second apart.
		s.verdict.Count("repeated ADD of a wrong clock refused")
	case a.Code != 0:
		s.verdict.Wrong("the repeated ADD of container %.8s of %s is refused: %s: %s", b.id, s.name, a.Reason,
			a.Message)
	case !slices.Equal(a.Addrs(), b.addrs):
		s.verdict.Wrong("container %.8s of %s has %s and was told %s", b.id, s.name, b.addrs, a.Addrs())
	default:
		s.verdict.Count("operation repeated ADD")
	}
}

// last is the last look at the addresses of a sandbox that is about to end: they were its own until now.
func (s *slot) last(b *sandbox) {
	for _, a := range b.addrs {
		awaited := s.ledger.Awaits(a) // what is read next may be from before the holder was restored
		live := s.read(a)
		if _, held := live.From(b.holds); s.steady() && !held && !awaited {
			s.verdict.Wrong("live pod %s (container %.8s) lost %s: version %d is %s, container %.8s of %s; history %v",
				b.pod, b.id, a, live.Version, live.State, live.ContainerID, live.Who(), live.History.Entries())
		}
		s.ledger.End(a, b.id)
	}
	b.over.Store(true)
}

// release sends the DELs of a container, and returns the last answer, or the first refusal.
func (s *slot) release(b *sandbox, rng *rand.Rand) (a plugin.Answer, ok bool) {
	for _, ifName := range slices.Backward(b.ifNames) {
		if a, ok = s.releaseOne(b, ifName, rng); !ok || a.Code != 0 {
			break
		}
	}
	return a, ok
}

// releaseOne sends a DEL until it is served, or something is wrong. After some tries it is a new one, as of a runtime
// that begins again.
func (s *slot) releaseOne(b *sandbox, ifName string, rng *rand.Rand) (a plugin.Answer, ok bool) {
	for began := s.history.Now(); !ok && s.ctx.Err() == nil && !s.verdict.Failed(); {
		if s.history.Now()-began > settled {
			s.verdict.Wrong("DEL of container %.8s of %s is not done within %s: %s: %s", b.id, b.pod, settled, a.Reason,
				a.Message)
			return a, false
		}
		tries := 0
		a, ok = s.ask(rng, http.MethodDelete, "", b.del(ifName, s.clock(b.host)), func() bool {
			tries++
			return tries == 2*replicas
		})
	}
	return a, ok
}

// DEL releases a sandbox, which may be gone from the given time on.
func (s *slot) DEL(b *sandbox, rng *rand.Rand, from time.Duration) {
	a, ok := s.release(b, rng)
	to := s.history.Now()
	switch {
	case !ok:
		to = judge.Never
	case a.Code != 0:
		s.verdict.Wrong("DEL of container %.8s of %s is refused: %s: %s", b.id, b.pod, a.Reason, a.Message)
	default:
		s.verdict.Count("operation DEL")
		if len(b.ifNames) == 1 { // else another may have answered the first
			s.noteDEL(b, a.By)
		}
		s.note("DEL of container %.8s of %s, which had %v", b.id, b.pod, b.addrs)
	}
	s.noteChange(b, b.addrs, false, from, to)
}

// lateDEL sends a DEL at a later time, while life goes on.
func (s *slot) lateDEL(b *sandbox, after, from time.Duration) {
	rng := rand.New(rand.NewPCG(s.rng.Uint64(), 0))
	s.background.Go(func() {
		wait(after)
		s.DEL(b, rng, from)
	})
}

// restart replaces the sandbox of a pod by another one, whose ADD comes after the DEL of the first, beside it,
// or before it.
func (s *slot) restart() {
	old := s.sandbox
	s.last(old)
	from := s.history.Now()
	switch s.rng.IntN(3) {
	case 0:
		s.DEL(old, s.rng, from)
		if s.rng.IntN(4) == 0 { // the next one is not made at once
			s.overtake(old)
		}
	case 1:
		s.lateDEL(old, 0, from)
	default:
		s.lateDEL(old, time.Duration(s.rng.IntN(3000))*time.Millisecond, from)
	}
	s.begin(s.newSandbox())
}

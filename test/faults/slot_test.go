package faults_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/test/judge"
	"github.com/bcsnet/bcsnet/test/plugin"
)

// slot is a place for a pod on a host, and the kubelet's worker for it. The pods of every other slot follow each
// other under one name, like those of a StatefulSet; the others never come back, like those of a Deployment.
type slot struct {
	*round
	number, home int
	name         string
	rng          *rand.Rand

	// mu is held during every step: whoever holds it finds no request of this slot under way, but for those
	// that the slot has given up waiting for.
	mu      sync.Mutex
	host    int    // of the pod: home, unless that was cut off when the pod was made
	uid     string // of the pod; "" while there is none
	created metav1.Time
	sandbox *sandbox
	// taken: an operator took the address away.
	taken bool
	// orphan is until when the containers run of a pod of which the API server, whose store was put back, knows
	// nothing; zero for any other pod.
	orphan time.Time
	// refusedSince is when the first of the last sandboxes was refused that all were.
	refusedSince time.Time
	refusals     int
	// leaving counts the DELs under way of earlier containers of the pod.
	leaving *atomic.Int32
}

// run lives one pod after the other while there is load. The last pod stays, if it has an address.
func (s *slot) run() {
	for s.loading() {
		// who waits for all slots would wait for one step of each
		for s.halted.Load() && pause(s.load, 20*time.Millisecond) {
		}
		s.mu.Lock()
		s.step()
		s.mu.Unlock()
		think := time.Duration(s.rng.IntN(30)) * time.Millisecond
		if s.rng.IntN(40) == 0 {
			think = time.Duration(s.rng.IntN(1000)) * time.Millisecond
		}
		pause(s.load, think)
	}
	s.mu.Lock() // the operator may still be at work
	defer s.mu.Unlock()
	s.endOrphan()
	if s.uid != "" && (s.sandbox == nil || s.taken) {
		s.endPod(true) // else a late ADD may get an address for a pod from which the operator has just taken one
	}
}

func (s *slot) step() {
	if s.uid != "" && !s.site.inTouch(s.host) {
		s.refusedSince, s.refusals = time.Time{}, 0
		return // its kubelet can ask nobody
	}
	if !s.orphan.IsZero() {
		if time.Now().After(s.orphan) {
			s.endOrphan()
		}
		return
	}
	if s.uid == "" {
		if s.number%2 == 1 {
			s.name = fmt.Sprintf("job-%d-%d", s.number, s.numbers.Add(1))
		}
		s.host = s.site.place(s.home)
		if s.createPod() {
			s.begin(s.newSandbox())
		}
		return
	}
	switch n := s.rng.IntN(100); {
	case s.taken:
		s.endPod(true)
	case s.sandbox == nil:
		s.begin(s.newSandbox())
	case n < 30, s.number%3 == 0 && s.staying.Load():
		s.repeat()
	case n < 60, s.number%3 == 0 && s.lasting.Load():
		s.restart()
	default:
		s.endPod(false)
	}
}

// begin is the ADD of a new sandbox, sometimes sent twice at once, and sometimes once more at a later time. (Only
// where the request tells when it began: without that a late one cannot be told from a new one.) A sandbox without an
// address by the end of the load is given up, by a DEL as the kubelet does.
func (s *slot) begin(b *sandbox) {
	s.sandbox = b
	served := make(chan netip.Addr, 1) // what the slot was told; closed when it gave up
	switch n := s.rng.IntN(20); {
	case !b.told:
	case n < 3:
		s.duplicate(b, 0, served)
	case n < 4:
		s.duplicate(b, time.Duration(s.rng.IntN(4000))*time.Millisecond, served)
	}
	from := s.history.Now()
	a, ok := s.callers.Ask(s.ctx, s.rng, http.MethodPost, "", func() any {
		request := s.add(b)
		b.asked = request.Host
		return request
	}, func() bool { return !s.goesOn() })
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
	b.addr = addrOf(a)
	served <- b.addr
	s.Count("operation ADD")
	switch b.asked {
	case secondHost(b.host):
		s.Count(eventSecond)
	case movingHost:
		s.Count(eventByIt)
	}
	s.note(b, b.addr, true, from, s.history.Now())
	// The answer is durable: the object says so at once.
	live, err := s.site.read(s.ctx, b.addr)
	switch {
	case err != nil:
		return
	case !b.holds(live):
		s.Wrong("ADD of container %.8s of %s (%s, told %t) was answered with %s, and then version %d is %s, "+
			"container %.8s of %s (%s)",
			b.id, b.who(), b.uid, b.told, b.addr, live.Version, live.State, live.ContainerID, live.Who(), live.PodUID)
		return
	}
	s.ledger.Hold(b.addr, b.who(), b.id, live.Version)
	s.report(b)
}

// refuse gives up a sandbox that is refused for good: a kubelet makes another one. (Within a second of each
// other two containers may seem to have come in the other order, where their requests do not say when they
// began.) The pod must get its address that way, soon.
func (s *slot) refuse(b *sandbox, a plugin.Answer) {
	s.Count("sandbox refused")
	if s.refusedSince.IsZero() {
		s.refusedSince = time.Now()
	}
	if s.refusals++; s.refusals >= 5 && time.Since(s.refusedSince) > stubborn {
		s.Wrong("ADD of live pod %s (%s) is refused again and again, now of container %.8s: %s: %s", b.who(), s.uid,
			b.id, a.Reason, a.Message)
	}
	s.giveUp(b)
}

// addrOf is the address of a served ADD.
func addrOf(a plugin.Answer) netip.Addr {
	for _, addr := range a.Addrs() {
		return addr
	}
	return netip.Addr{}
}

func never() bool { return false }

// stubborn is for how long all sandboxes of a pod may be refused, with an API server that was away in between.
const stubborn = time.Minute

func (s *slot) giveUp(b *sandbox) {
	b.over.Store(true)
	s.sandbox = nil
	s.lateDEL(b, 0, s.history.Now())
}

// duplicate sends the ADD of a sandbox once more, to one replica. While the sandbox has its address the
// answer is that one.
func (s *slot) duplicate(b *sandbox, after time.Duration, served <-chan netip.Addr) {
	rng := rand.New(rand.NewPCG(s.rng.Uint64(), 1))
	url := s.callers.URLs[rng.IntN(len(s.callers.URLs))]
	s.background.Go(func() {
		pause(s.ctx, after)
		from := s.history.Now()
		a, err := s.callers.Once(s.ctx, rng, url, http.MethodPost, "", s.add(b))
		if err != nil || a.Code != 0 {
			return
		}
		s.Count("operation duplicate ADD")
		over := b.over.Load()
		s.note(b, addrOf(a), true, from, s.history.Now())
		if !over {
			select {
			case addr, told := <-served:
				if told && addr != addrOf(a) && !b.over.Load() {
					s.Wrong("container %.8s of %s was told %s by one replica and %s by another", b.id, b.who(), addr,
						addrOf(a))
				}
				over = !told || addr != addrOf(a)
			case <-s.ctx.Done():
			}
		}
		if over { // nobody else writes down when this ends
			s.note(b, addrOf(a), false, from, judge.Never)
		}
	})
}

// repeat asks again for what the sandbox has.
func (s *slot) repeat() {
	b := s.sandbox
	a, ok := s.callers.Ask(s.ctx, s.rng, http.MethodPost, "", func() any {
		if b.anew {
			b.begin()
		}
		return s.add(b)
	},
		func() bool { return !s.goesOn() })
	switch {
	case !ok:
	case a.Code != 0:
		s.Wrong("the repeated ADD of container %.8s of %s is refused: %s: %s", b.id, b.who(), a.Reason, a.Message)
	case addrOf(a) != b.addr:
		s.Wrong("container %.8s of %s has %s and was told %s", b.id, b.who(), b.addr, addrOf(a))
	default:
		s.Count("operation repeated ADD")
	}
}

// lateDEL sends a DEL at a later time, while life goes on.
func (s *slot) lateDEL(b *sandbox, after, from time.Duration) {
	rng, leaving := rand.New(rand.NewPCG(s.rng.Uint64(), 0)), s.leaving
	leaving.Add(1)
	s.background.Go(func() {
		defer leaving.Add(-1)
		pause(s.ctx, after)
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
	case 1:
		s.lateDEL(old, 0, from)
	default:
		s.lateDEL(old, time.Duration(s.rng.IntN(3000))*time.Millisecond, from)
	}
	s.begin(s.newSandbox())
}

package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/test/judge"
	"github.com/bcsnet/bcsnet/test/plugin"
)

const (
	// forgottenAtOnce, and so many per minute besides, are pods that go without any DEL. In a short round they are not
	// more, with those of a tenant, than the brake of the collection lets pass.
	forgottenAtOnce    = 2
	forgottenPerMinute = 8
	// settled is by when pods and leases must agree after the last fault and the last pod that goes.
	settled = 3 * time.Minute
)

// round is a time of load and faults, and the look at what came of it.
type round struct {
	*judge.Verdict
	site    *fixture
	callers *plugin.Callers
	history *judge.History
	ledger  *watcher
	slots   []*slot
	length  time.Duration

	// ctx lasts for all of the round; load ends when no more faults and new pods are wanted.
	ctx, load  context.Context
	enough     context.CancelFunc
	background sync.WaitGroup // requests that come late
	numbers    atomic.Int64   // of containers

	mu     sync.Mutex
	forget int

	journal journal
	island  island
	// calm is held by whoever wants no other fault meanwhile; halted has requests given up that would have to wait for
	// others.
	calm   sync.RWMutex
	halted atomic.Bool
	// steady is held by those whose pods nobody would tell of a store that was put back, and while it is put back.
	steady sync.RWMutex
	// spared is held by those whose pods no operator must take, and while one releases a host.
	spared sync.RWMutex
	// lasting has the pods of every third slot go on, from container to container.
	lasting atomic.Bool
	// staying has the containers of every third slot go on.
	staying atomic.Bool
}

func (r *round) loading() bool { return r.load.Err() == nil }

// goesOn reports whether requests are worth being repeated.
func (r *round) goesOn() bool { return r.loading() && !r.halted.Load() }

// lastLeak is the time between the last pods that go without DEL and the end of the load: it takes most of a minute
// until they count as gone.
const lastLeak = 20 * time.Second

// leaky reports whether pods may still go without DEL.
func (r *round) leaky() bool { return r.loading() && r.history.Now() < r.length-lastLeak }

// forgetful reports whether one more pod may go without DEL.
func (r *round) forgetful() bool {
	if !r.leaky() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forget > forgottenAtOnce+int(forgottenPerMinute*r.history.Now().Minutes()) {
		return false
	}
	r.forget++
	return true
}

// plan is what a round is made of.
type plan struct {
	seed uint64
	// length is the time for which the load lasts, unless an actor has enough before.
	length time.Duration
	actors func(*round) []func(*rand.Rand)
}

// everything is the plan that breaks all that can break.
func everything(seed uint64, length time.Duration) plan {
	return plan{seed: seed, length: length, actors: (*round).actors}
}

// play runs a round: load and faults for a while, then what came of them. The verdict has what is wrong.
func play(t *testing.T, f *fixture, v *judge.Verdict, p plan) {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: max(64, hosts*f.slots)}
	defer transport.CloseIdleConnections()
	r := &round{
		Verdict: v, site: f, length: p.length, history: judge.NewHistory(), ledger: &watcher{Ledger: judge.NewLedger(v)},
		island:  island{taken: map[*sandbox]bool{}},
		callers: &plugin.Callers{HTTP: &http.Client{Transport: transport}, Count: v.Count, Wrong: v.Wrong},
	}
	for _, one := range f.replicas {
		r.callers.URLs = append(r.callers.URLs, one.URL)
	}
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithTimeout(t.Context(), p.length+3*settled)
	defer cancel()
	r.load, r.enough = context.WithTimeout(r.ctx, p.length)
	defer r.enough()

	var watching, working, mischief sync.WaitGroup
	watch, unwatch := context.WithCancel(r.ctx)
	defer unwatch()
	watching.Go(func() { r.ledger.watch(watch, f) })
	for i := range hosts * f.slots {
		one := &slot{
			round: r, number: i, home: i % hosts, name: fmt.Sprintf("web-%d", i), rng: rand.New(rand.NewPCG(p.seed, uint64(i))),
		}
		r.slots = append(r.slots, one)
	}
	for _, one := range r.slots {
		working.Go(one.run)
	}
	for i, actor := range p.actors(r) {
		mischief.Go(func() { actor(rand.New(rand.NewPCG(p.seed, uint64(1000+i)))) })
	}
	select {
	case <-r.load.Done():
	case <-v.Broken():
		r.enough()
	}
	mischief.Wait() // what they broke, they have mended
	working.Wait()
	r.background.Wait() // the last pod that goes has gone
	if !r.Failed() {
		r.settle(time.Now())
	}
	r.sweep()
	unwatch()
	watching.Wait()
	if text := r.history.Illegal(); text != "" {
		r.Wrong("an address had two holders: %s", text)
	}
	r.Count("round")
	if r.Failed() {
		t.Logf("the last faults:\n%s", r.journal.tail(60))
	}
}

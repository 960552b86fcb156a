package sim_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/bcsnet/bcsnet/test/judge"
)

// result is what came of a run.
type result struct {
	Plan    plan           `json:"plan"`
	Wrong   []string       `json:"wrong"`
	Counts  map[string]int `json:"counts"`
	Record  string         `json:"record"` // what happened last
	Lasted  time.Duration  `json:"lasted"` // in virtual time, until the first that was wrong
	Mishaps []string       `json:"mishaps"`
}

// play runs a plan in a bubble of virtual time: load and mishaps for a while, then what came of them.
func play(t *testing.T, p plan) result {
	t.Helper()
	cryptotest.SetGlobalRandom(t, p.Seed) // names of replicas, and so of their Leases
	var f *fixture
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		f = newFixture(ctx, t, p)
		f.run()
		cancel()
		for _, r := range f.replicas {
			r.ended.Wait()
		}
		f.callers.HTTP.CloseIdleConnections()
		for _, r := range f.replicas {
			r.pipes.cut()
		}
		f.under.Wait()
		// client-go's reflectors notice that they are to end when their pause between two tries is over
		wait(2 * time.Minute)
	})
	wrong := f.verdict.Violations()
	if text := f.history.Illegal(); text != "" {
		wrong = append(wrong, "an address had two holders: "+text)
	}
	r := result{Plan: p, Wrong: wrong, Counts: f.verdict.Counts(), Lasted: f.lasted}
	if len(wrong) > 0 {
		r.Record = f.record()
	}
	for _, m := range f.mishaps() {
		r.Mishaps = append(r.Mishaps, m.name)
	}
	return r
}

func (f *fixture) run() {
	load, rest := context.WithTimeout(f.ctx, f.plan.length())
	defer rest()
	f.load = load
	for _, r := range f.replicas {
		r.start()
	}
	var working, mischief, beating sync.WaitGroup
	beating.Go(f.beat)
	for i := range f.plan.Slots {
		if f.plan.has(fmt.Sprint("slot ", i)) {
			f.slots = append(f.slots, newSlot(f, i))
		}
	}
	for _, s := range f.slots {
		working.Go(s.run)
	}
	f.machines = f.newMachines()
	for _, m := range f.machines {
		working.Go(m.run)
	}
	mischief.Go(f.misbehave)
	select {
	case <-load.Done():
	case <-f.verdict.Broken():
		rest()
	}
	f.lasted = f.history.Now()
	mischief.Wait()
	working.Wait()
	f.background.Wait()
	for _, s := range f.slots {
		if s.rng = draw(f.plan.Seed, "report", s.number); s.sandbox != nil {
			s.report(s.sandbox)
		}
	}
	if !f.verdict.Failed() {
		f.await("after the mishaps", f.ledger.All())
	}
	for _, m := range f.machines {
		if !f.verdict.Failed() {
			m.end()
		}
	}
	losing := f.plan.Losses || f.plan.long() && draw(f.plan.Seed, "lost namespace").IntN(4) == 0
	if losing && !f.verdict.Failed() {
		f.loseNamespace()
	}
	for _, s := range f.slots {
		if s.uid != "" && !f.verdict.Failed() {
			s.rng = draw(f.plan.Seed, "sweep", s.number)
			s.endPod(true)
		}
	}
	f.background.Wait()
	if !f.verdict.Failed() {
		f.await("after the last pod", nil)
	}
}

// await reads all leases until they are those that the pods should have.
func (f *fixture) await(when string, want map[netip.Addr]judge.Holding) {
	for deadline := time.Now().Add(settled); ; wait(time.Second) {
		wrong := judge.Differences(f.active(), want)
		switch {
		case len(wrong) == 0:
			return
		case time.Now().After(deadline):
			f.verdict.Wrong("%s pods and leases do not agree:\n%s", when, strings.Join(wrong, "\n"))
			return
		}
	}
}

// record tells what happened last.
func (f *fixture) record() string {
	var out strings.Builder
	fmt.Fprintf(&out, "what was done last:\n%s", &f.journal)
	for _, r := range f.replicas {
		fmt.Fprintf(&out, "\nthe log of %s:\n%s", r.name, &r.log)
	}
	return out.String()
}

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
	var w *world
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w = newWorld(ctx, t, p)
		w.run()
		cancel()
		for _, r := range w.replicas {
			r.ended.Wait()
		}
		w.callers.HTTP.CloseIdleConnections()
		for _, r := range w.replicas {
			r.pipes.cut()
		}
		w.under.Wait()
		wait(2 * time.Minute) // client-go's reflectors notice that they are to end when their pause between two tries is over
	})
	wrong := w.verdict.Violations()
	if text := w.history.Illegal(); text != "" {
		wrong = append(wrong, "an address had two holders: "+text)
	}
	r := result{Plan: p, Wrong: wrong, Counts: w.verdict.Counts(), Lasted: w.lasted}
	if len(wrong) > 0 {
		r.Record = w.record()
	}
	for _, m := range w.mishaps() {
		r.Mishaps = append(r.Mishaps, m.name)
	}
	return r
}

func (w *world) run() {
	load, rest := context.WithTimeout(w.ctx, w.plan.length())
	defer rest()
	w.load = load
	for _, r := range w.replicas {
		r.start()
	}
	var working, mischief, beating sync.WaitGroup
	beating.Go(w.beat)
	for i := range w.plan.Slots {
		if w.plan.has(fmt.Sprint("slot ", i)) {
			w.slots = append(w.slots, newSlot(w, i))
		}
	}
	for _, s := range w.slots {
		working.Go(s.run)
	}
	mischief.Go(w.misbehave)
	select {
	case <-load.Done():
	case <-w.verdict.Broken():
		rest()
	}
	w.lasted = w.history.Now()
	mischief.Wait()
	working.Wait()
	w.background.Wait()
	for _, s := range w.slots {
		if s.rng = draw(w.plan.Seed, "report", s.number); s.sandbox != nil {
			s.report(s.sandbox)
		}
	}
	if !w.verdict.Failed() {
		w.await("after the mishaps", w.ledger.All())
	}
	losing := w.plan.Losses || w.plan.long() && draw(w.plan.Seed, "lost namespace").IntN(4) == 0
	if losing && !w.verdict.Failed() {
		w.loseNamespace()
	}
	for _, s := range w.slots {
		if s.uid != "" && !w.verdict.Failed() {
			s.rng = draw(w.plan.Seed, "sweep", s.number)
			s.endPod(true)
		}
	}
	w.background.Wait()
	if !w.verdict.Failed() {
		w.await("after the last pod", nil)
	}
}

// await reads all leases until they are those that the pods should have.
func (w *world) await(when string, want map[netip.Addr]judge.Holding) {
	for deadline := time.Now().Add(settled); ; wait(time.Second) {
		wrong := judge.Differences(w.active(), want)
		switch {
		case len(wrong) == 0:
			return
		case time.Now().After(deadline):
			w.verdict.Wrong("%s pods and leases do not agree:\n%s", when, strings.Join(wrong, "\n"))
			return
		}
	}
}

// record tells what happened last.
func (w *world) record() string {
	var out strings.Builder
	fmt.Fprintf(&out, "what was done last:\n%s", &w.journal)
	for _, r := range w.replicas {
		fmt.Fprintf(&out, "\nthe log of %s:\n%s", r.name, &r.log)
	}
	return out.String()
}

// math/rand, of which client-go draws how long it waits, begins with the same number in each process.
//
//go:debug randautoseed=0

// Package sim_test runs three whole replicas of the controller, their API server, the kubelets of six hosts and an
// operator in virtual time, draws from a seed how long everything takes and what goes wrong, and judges what comes of
// it.
package sim_test

import (
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	// The other handler slows errors down by the time of the last one, which is none of a bubble.
	utilruntime.ErrorHandlers = nil //nolint:reassign // made to be set
	debug.SetGCPercent(400)         // a round is over before much of it is garbage
	os.Exit(m.Run())
}

// number is what a variable of the environment says; otherwise without it.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestSim plays one short round, or with SIM_MINUTES or SIM_OPERATIONS long ones until that is over or something is
// wrong. SIM_SEED is the seed of the first, which has the next ones follow. With SIM_RESTORES the store is put back at
// times, with SIM_LOSSES each round ends with the loss of a namespace.
func TestSim(t *testing.T) {
	seed := number(t, "SIM_SEED", rand.Uint64())
	minutes, operations := number(t, "SIM_MINUTES", 0), number(t, "SIM_OPERATIONS", 0)
	p := plan{Seed: seed, Seconds: 60, Slots: 36, Clocks: true, Sticky: true}
	if minutes == 0 && operations == 0 {
		p = plan{Seed: seed, Seconds: short, Slots: 24, Clocks: true, Sticky: true}
	}
	p.Restores, p.Losses = os.Getenv("SIM_RESTORES") != "", os.Getenv("SIM_LOSSES") != ""
	all := tally{counts: map[string]int{}, began: time.Now()}
	defer func() { t.Logf("SIM_SEED=%d, in all:\n%s", seed, &all) }()
	if minutes == 0 && operations == 0 {
		r := play(t, p)
		if all.add(r); len(r.Wrong) > 0 {
			report(t, r)
		}
		return
	}
	var bad []result
	playAll(t, func() (plan, bool) {
		next := p
		p.Seed++
		return next, true
	}, func(r result) bool {
		all.add(r)
		if len(r.Wrong) > 0 {
			bad = append(bad, r)
		}
		over := minutes > 0 && time.Since(all.began) >= time.Duration(minutes)*time.Minute
		return over || len(bad) > 0 || minutes == 0 && all.operations >= int(operations)
	})
	for _, r := range bad {
		report(t, r)
	}
}

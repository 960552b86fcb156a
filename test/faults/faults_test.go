// Package faults_test breaks everything that can break under three replicas of the controller as it is
// shipped, at random from a seed, while kubelets and an operator work, and judges what they were told and
// what the API server has: no address twice, no live pod without its address, nothing left behind.
package faults_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/judge"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

const (
	shortRound = 40 * time.Second
	longRound  = 8 * time.Minute
	// Pods of a host in a short run and in a long one. Most of a pod's time goes by in waiting for what is broken.
	shortSlots = 8
	longSlots  = 40
)

// TestFaults is one short round, or as many long ones as FAULTS_MINUTES leaves time for. FAULTS_SEED repeats
// the choices of a run, though not their timing.
func TestFaults(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("FAULTS_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 0, 64); err != nil {
			t.Fatalf("FAULTS_SEED: %v", err)
		}
	}
	length, slots, end, hurried := shortRound, shortSlots, time.Now(), true
	if text := os.Getenv("FAULTS_MINUTES"); text != "" {
		minutes, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("FAULTS_MINUTES: %v", err)
		}
		length, slots, end, hurried = longRound, longSlots, end.Add(time.Duration(minutes)*time.Minute), false
	}
	t.Logf("FAULTS_SEED=%d", seed)
	v := judge.NewVerdict()
	f := newFixture(t, slots, build{faulty: faultyController(t), hurried: hurried})
	began := time.Now()
	for n := uint64(0); n == 0 || time.Now().Before(end) && !v.Failed(); n++ {
		play(t, f, v, everything(seed+n, length))
		t.Logf("%s: %d operations, %d faults", time.Since(began).Round(time.Second), v.Total("operation"), v.Total("fault"))
	}
	t.Logf("FAULTS_SEED=%d, in all:\n%s", seed, v)
	if !hurried && !v.Failed() {
		hadAll(t, v.Counts())
	}
	for _, text := range v.Violations() {
		t.Error(text)
	}
}

// hadAll checks that a long run had each event that it is for.
func hadAll(t *testing.T, counts map[string]int) {
	t.Helper()
	for _, event := range []string{
		eventAllDead, eventLate, eventRaised, eventWitness, eventMoved, eventSecond, eventByIt, eventStarted,
		eventSecondPod, eventUnclaimed, eventReclaimed,
	} {
		if counts[event] == 0 {
			t.Errorf("the run never had: %s", event)
		}
	}
	answered, givenUp := counts[callAnswered], counts[callGivenUp]
	if all := answered + givenUp; givenUp < all/3 || givenUp == 0 || givenUp > all*2/3 {
		t.Errorf("of %d impatient calls %d were given up, want about half", all, givenUp)
	}
}

// What plugin.Callers count of impatient calls.
const callAnswered, callGivenUp = "impatient call answered", "impatient call given up"

// faultyController builds the controller with what the tag faults adds.
func faultyController(t *testing.T) string {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bcsnet-controller")
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "faults", "-o", file, "./cmd/controller")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

package faults_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/test/judge"
)

// ownFault begins what went wrong with the suite itself, and says nothing of the controller.
const ownFault = "the suite: "

// coarse are the guards that the suite itself finds to be broken.
func coarse() map[string]string {
	return map[string]string{
		"precondition": "a write replaces the version that it was decided on, and no other",
		"name":         "a DEL releases what its container holds, not what the pod of that name holds",
		"collect":      "an address is taken back after two looks, a read of its pod and a word from its host",
		"write":        "an ADD is answered when its address is stored, not before",
	}
}

// TestMutations breaks one guard of the controller at a time, in a build for this test, and expects the suite
// to find it: it can.
func TestMutations(t *testing.T) {
	if os.Getenv("FAULTS_MUTATIONS") == "" {
		t.Skip("set FAULTS_MUTATIONS, or say: make test-mutations")
	}
	faulty := faultyController(t)
	for name, guard := range coarse() {
		t.Run(name, func(t *testing.T) {
			v := judge.NewVerdict()
			play(t, newFixture(t, shortSlots, build{faulty: faulty, broken: name}), v, everything(rand.Uint64(), findTime))
			found := slices.IndexFunc(v.Violations(), func(text string) bool { return !strings.HasPrefix(text, ownFault) })
			if found < 0 {
				t.Fatalf("not found to be broken: %s\n%s\n%s", guard, v, strings.Join(v.Violations(), "\n"))
			}
			t.Logf("found after %d operations and %d faults: %s", v.Total("operation"), v.Total("fault"), v.Violations()[found])
		})
	}
}

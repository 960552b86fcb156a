package faults_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// findTime is the time that a broken guard may take to be found.
const findTime = 2 * time.Minute

// guard is one on which promises rest, and the tests that fail when it is broken.
type guard struct{ does, pkg, tests string }

func guards() map[string]guard {
	return map[string]guard{
		"marks": {"a DEL that comes before its ADD is remembered", "pkg/allocator",
			"TestDelBeforeItsAdd|TestMarkSparesALaterAdd"},
		"reach": {"a DEL bars what its caller may act for", "pkg/allocator",
			"TestMarksReachAsFarAsTheirCaller|TestMarksOfOthersStay"},
		"share": {"whoever sends DELs without end drops its own tombstones", "pkg/allocator",
			"TestMarksOfOthersStay"},
		"future": {"the clock of a host says nothing of the requests of another one", "pkg/allocator",
			"TestClockOfAnotherHost"},
		"reader":    {"a refusal names no holder to those who may not know of it", "test/attacks", "TestAttacks"},
		"fruitless": {"releases that free nothing have a rate", "test/attacks", "TestAttacks"},
		"mirror":    {"static pods draw from no claim", "test/attacks", "TestAttacks"},
		"supersession": {"an older container of a pod does not get its address back", "pkg/allocator",
			"TestLateAddOfAReplacedContainer"},
		"second":    {"a DEL ends one of two attachments", "pkg/allocator", "TestMigration"},
		"migrating": {"a second attachment is for whom KubeVirt names", "pkg/allocator", "TestMigrationIsProved"},
		"confirm": {"an ADD is answered when the watch shows what others did before", "pkg/allocator",
			"TestOneContainerAtTwoReplicas"},
		"yield": {"of two pods of one key, served at once, one has an address", "pkg/allocator",
			"TestTwoPodsOfOneKeyAtTwoReplicas"},
		"network": {"one container has the addresses of one network", "pkg/allocator",
			"TestOneContainerInTwoNetworks"},
		"doubt": {"an address whose write may have been stored is nobody else's", "pkg/allocator",
			"TestUnknownOutcome"},
		"uid": {"an address moves to another container after a look at the pod", "pkg/allocator",
			"TestWrongUIDIsCorrected|TestCacheShowsTheReplacedPod"},
		"clock":     {"a time that cannot be true counts as the arrival", "pkg/allocator", "TestClockIsTold"},
		"cooldown":  {"a released address rests", "pkg/allocator", "TestCooldownAtReplicasWithWrongClocks"},
		"finalizer": {"an address in use has a finalizer", "pkg/allocator", "TestFirstAllocation"},
		"deleting": {"an address whose object is being deleted is not handed out", "pkg/allocator",
			"TestObjectIsBeingDeleted"},
		"earlier": {"a restored store does not give an address back to an earlier holder", "pkg/ipam/index",
			"TestRestartToEarlierHolders"},
		"emptied": {"an address that somebody emptied by hand is lost, not free", "pkg/ipam/index", "TestLost"},
		"look":    {"an address is taken back after two looks", "pkg/gone", "TestDecide"},
		"static":  {"a static pod runs although the API server does not know of it", "pkg/gone", "TestDecide"},
		"version": {"an older version of an address does not replace a newer one", "pkg/ipam/index",
			"TestIndexAgainstModel"},
		"lost": {"an address in use whose object has gone is nobody else's", "pkg/ipam/index", "TestLost"},
		"freed": {"the release of an earlier holder that a restored store names frees nothing", "pkg/ipam/index",
			"TestEarlierHolderIsReleasedAfterARestart"},
		"behind": {"what a restored store says of an earlier holder is written again", "pkg/ipam/index",
			"TestRestartToEarlierHolders"},
		"quota": {"a namespace has no more addresses than its quota", "pkg/ipam/index", "TestQuota"},
		"gate": {"no more is under way than the API server takes", "pkg/limiter",
			"TestLimiterModel|TestLimiterIsFair"},
		"overload": {"what cannot be served in time is refused on arrival", "pkg/limiter",
			"TestGoodputUnderOverload"},
		"lag": {"a write keeps its place until the watch has delivered it", "pkg/store",
			"TestPlaceIsKeptUntilTheWatchDelivers"},
		"admission": {"no more requests for addresses are under way than can be answered", "pkg/httpapi",
			"TestTooManyAddsAreRefused"},
		"releases": {"releases go before allocations", "pkg/limiter", "TestGiveBackGoesFirst"},
		"proof": {"a forwarded request proves that a replica sent it", "pkg/httpapi",
			"TestForwardedRequestsAreProven|TestForgedHop"},
		"budget": {"status is written no more often than its budget allows", "pkg/controller/conditions",
			"TestStatusBudgetOfManyPools"},
		"silence":  {"a watch that is open and silent is replaced", "pkg/store", "TestSilentWatchIsReplaced"},
		"readyz":   {"a replica whose watches are silent is not ready", "test/http", "TestSilentWatchAtAReplica"},
		"handover": {"a leader in trouble hands over", "test/http", "TestSilentLeaderHandsOver"},
		"back": {"a kubelet that was cut off ends containers when it is back", "test/collect",
			"TestHostIsBack"},
		"live": {"the API server has the last word on a pod that is gone", "test/collect", "TestLookAgain"},
		"host": {"a host has to be in touch before what ran on it is over", "test/collect", "TestHostIsCutOff"},
		"brake": {"addresses whose namespace or node is not seen wait when many are due", "test/collect",
			"TestBrake"},
		"returning": {"nothing new is given right after a restore, while other replicas may know who has it",
			"pkg/allocator", "TestAskedAgainAfterARestore"},
		"witness": {"nothing new is given before the other replicas have told what they have seen of the store",
			"test/http", "TestStartsAfterARestore"},
		"receipt": {"a store that lacks what a node was answered was put back", "test/http",
			"TestReceiptOfAForgottenAddress"},
		"bound": {"of two leases the one from before a restore came first", "pkg/allocator", "TestWhoStays"},
		"restores": {"a restore that one watch notices has all watches list", "pkg/store",
			"TestRestoreThatOneWatchNotices"},
		"unwatched": {"a write while no watch runs replaces what was seen, not what has its version", "pkg/store",
			"TestWriteWhileNoWatchRuns"},
		"away": {"a watch whose API server was away begins after a list", "pkg/store",
			"TestListsAfterTheAPIServerWasAway"},
		"epoch": {"what was learnt before a restore says nothing of the versions after it", "pkg/allocator",
			"TestRequestAcrossARestore"},
		"restore": {"a lost address is made again for whoever had it", "pkg/recovery", "TestRestore"},
	}
}

// TestGuards breaks one guard at a time, in tests that are built for it, and expects the tests that are named for it to
// fail, and to pass without.
func TestGuards(t *testing.T) {
	if os.Getenv("FAULTS_MUTATIONS") == "" {
		t.Skip("set FAULTS_MUTATIONS, or say: make test-mutations")
	}
	binaries := map[string]string{}
	dir := t.TempDir()
	for name, g := range guards() {
		t.Run(name, func(t *testing.T) {
			if binaries[g.pkg] == "" {
				binaries[g.pkg] = faultyTests(t, dir, g.pkg)
			}
			if out, err := g.test(t, binaries[g.pkg], ""); err != nil || !strings.Contains(out, "--- PASS") {
				t.Fatalf("%s of %s do not pass as they are: %v\n%s", g.tests, g.pkg, err, out)
			}
			out, err := g.test(t, binaries[g.pkg], name)
			if _, failed := errors.AsType[*exec.ExitError](err); !failed || !strings.Contains(out, "--- FAIL") {
				t.Fatalf("not found to be broken: %s: %v\n%s", g.does, err, out)
			}
		})
	}
}

// test runs the tests of a guard with another one broken, or none.
func (g guard) test(t *testing.T, binary, broken string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), findTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.v", "-test.count=1", "-test.failfast", "-test.run=^("+g.tests+")")
	cmd.Dir = filepath.Join(root(t), g.pkg)
	cmd.Env = append(os.Environ(), "FAULTS_BREAK="+broken)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its control plane
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// faultyTests builds the tests of a package with what the tag faults adds.
func faultyTests(t *testing.T, dir, pkg string) string {
	t.Helper()
	file := filepath.Join(dir, strings.ReplaceAll(pkg, "/", "-")+".test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-tags", "faults", "-o", file, "./"+pkg)
	cmd.Dir = root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

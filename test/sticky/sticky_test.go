package sticky_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// longEnv runs all combinations, and then operations at random.
const longEnv = "STICKY_LONG"

func isLong() bool { return os.Getenv(longEnv) != "" }

// together is the number of cases that run at once.
const together = 40

const (
	sharedNodes = "all"
	replicas    = 3
)

// exists says whether there is such a case: what is refused is tested apart.
func exists(k kind, policy string, op operation) bool {
	scales := k == deployment || k == statefulSet || k == fleet
	switch {
	case k == barePod && policy == immutable, k == daemonSet && (policy == immutable || policy == never):
		return false
	case op == rollWithSurge:
		return k == deployment || k == daemonSet
	case op == rollInPlace:
		return k != barePod
	case op == scaleToOne, op == scaleToZero:
		return scales
	case op == foreground, op == background:
		return k != barePod
	}
	return true
}

// brief says whether a case is in the short form: the workloads that most people run with three policies, the others
// with the policy where it matters most, and each operation twice.
func brief(k kind, policy string, op operation) bool {
	most := map[kind]string{fleet: immutable, daemonSet: shared, barePod: timed}[k]
	switch op {
	case podDelete, rollInPlace, forceDelete:
		return k == deployment && slices.Contains([]string{plain, immutable, timed}, policy) ||
			k == statefulSet && slices.Contains([]string{immutable, never, shared}, policy) || policy == most
	case rollWithSurge:
		return k == deployment && policy == immutable || k == daemonSet && policy == most
	case nodeLoss:
		return k == deployment && policy == never || k == statefulSet && policy == immutable
	case scaleToOne:
		return k == deployment && policy == timed || k == statefulSet && policy == plain
	case scaleToZero:
		return k == deployment && policy == never || k == fleet && policy == most
	case foreground:
		return k == deployment && policy == immutable || k == daemonSet && policy == most
	case background:
		return k == statefulSet && policy == never || k == fleet && policy == most
	}
	return false
}

// size is the number of addresses that the pool of a case has: no more than the contract says that it needs where the
// operation shows that, else enough that an address which is free is not taken again by chance.
func size(op operation) int {
	switch op {
	case podDelete, forceDelete, rollInPlace:
		return replicas
	case rollWithSurge:
		return replicas + 1
	}
	return 8 * replicas
}

// TestSticky: every kind of workload with every policy, through all that befalls it.
func TestSticky(t *testing.T) {
	f := newFixture(t)
	f.kubelet.addNodes(t, sharedNodes, replicas)
	if !isLong() {
		t.Run("brief", func(t *testing.T) { f.killing(t, 5, 5*time.Second, f.matrix(brief)) })
		return
	}
	t.Run("all", func(t *testing.T) { runAll(t, f.matrix(exists)) })
	t.Run("killed", func(t *testing.T) {
		// their namespace is there
		again := slices.DeleteFunc(f.matrix(brief), func(p part) bool { return p.name == exampleNamespace })
		f.killing(t, 15, 10*time.Second, again)
	})
	t.Run("random", f.random)
}

// part is a case.
type part struct {
	name string
	run  func(t *testing.T)
}

// runAll runs cases beside each other: they wait more than they work.
func runAll(t *testing.T, parts []part) {
	t.Helper()
	t.Logf("%d cases", len(parts))
	slots := make(chan struct{}, together)
	var wg sync.WaitGroup
	for _, p := range parts {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			t.Run(p.name, func(t *testing.T) { p.run(t) })
		})
	}
	wg.Wait()
}

// matrix are the cases of the table that are chosen, and those beside it. What is done in one pool size is done in one
// app.
func (f *fixture) matrix(chosen func(kind, string, operation) bool) []part {
	parts := append(f.refusedParts(), f.otherParts()...)
	for _, k := range []kind{deployment, statefulSet, fleet, daemonSet, barePod} {
		for _, policy := range []string{plain, immutable, never, timed, shared} {
			for _, ops := range [][]operation{
				{podDelete, forceDelete, rollInPlace}, {rollWithSurge}, {nodeLoss}, {scaleToOne}, {scaleToZero}, {foreground}, {background},
			} {
				ops = slices.DeleteFunc(ops, func(op operation) bool {
					return !exists(k, policy, op) || !chosen(k, policy, op)
				})
				if len(ops) > 0 {
					parts = append(parts, f.part(k, policy, ops))
				}
			}
		}
	}
	return parts
}

// part does operations to an app of its own.
func (f *fixture) part(k kind, policy string, ops []operation) part {
	text := make([]string, len(ops))
	for i, op := range ops {
		text[i] = string(op)
	}
	name := fmt.Sprintf("%s-%s-%s", k, policy, strings.Join(text, "-"))
	return part{name, func(t *testing.T) {
		t.Helper()
		site := strings.NewReplacer("%", "", "recreate-", "", "-delete", "", "-3", "").Replace(name)
		f.through(t, site, k, policy, ops)
	}}
}

// through takes an app of a site of its own through operations.
func (f *fixture) through(t *testing.T, site string, k kind, policy string, ops []operation) {
	t.Helper()
	s := f.newSite(t, site, size(ops[0]), sharedNodes)
	if slices.Contains(ops, nodeLoss) {
		s.nodes = s.namespace
		f.kubelet.addNodes(t, s.nodes, replicas)
	}
	a := s.newApp(k, asks(policy, k, s.namespace), replicas)
	a.onObject = ops[0] == background // its own annotations, not those of its template
	now := a.start(t)
	for _, op := range ops {
		now = a.do(t, op, now)
	}
}

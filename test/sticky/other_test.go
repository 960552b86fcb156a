package sticky_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// otherParts are the cases that stand beside the table.
func (f *fixture) otherParts() []part {
	return []part{
		{"blue-green-deploy", func(t *testing.T) { t.Helper(); f.blueGreen(t, deployment) }},
		{"blue-green-sts", func(t *testing.T) { t.Helper(); f.blueGreen(t, statefulSet) }},
		{"blue-green-fleet", func(t *testing.T) { t.Helper(); f.blueGreen(t, fleet) }},
		{"expiry-deploy", func(t *testing.T) { t.Helper(); f.expiry(t, deployment) }},
		{"expiry-fleet", func(t *testing.T) { t.Helper(); f.expiry(t, fleet) }},
		{"most-recent-first", f.mostRecentFirst},
		{"slow-end", f.slowEnd},
		{"own-addresses", f.ownAddresses},
		{"named-claim", f.namedClaim},
		{"owners-claim", f.ownersClaim},
		{"owners-claim-late", f.lateClaim},
		{exampleNamespace, f.examples},
		{"passed-on-deploy", func(t *testing.T) { t.Helper(); f.passedOn(t, deployment) }},
		{"passed-on-fleet", func(t *testing.T) { t.Helper(); f.passedOn(t, fleet) }},
		{"claim-deleted", f.claimDeleted},
		{"namespace-deleted", f.namespaceDeleted},
		{"policy-dropped-deploy", func(t *testing.T) { t.Helper(); f.policyDropped(t, deployment) }},
		{"policy-dropped-sts", func(t *testing.T) { t.Helper(); f.policyDropped(t, statefulSet) }},
		{"another-pool-on-delete", f.poolOnDelete},
		{"another-pool-by-partition", f.poolByPartition},
		{"another-pool-immutable", f.poolOfImmutable},
		{"claim-lost", f.claimLost},
		{"claim-refused", f.claimRefused},
		{"claim-ahead", f.claimAhead},
		{"claim-conflict", f.claimConflict},
	}
}

// blueGreen: two apps of two namespaces share a pool by a claim that an operator made for both. What one gives up the
// other gets, but the numbered pods of the one are not those of the other.
func (f *fixture) blueGreen(t *testing.T, k kind) {
	t.Helper()
	s := f.newSite(t, "blue-"+string(k), 8*replicas, sharedNodes, "-green")
	both := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: controlplane.SystemNamespace, Name: "pool-" + s.pool}}
	both.Spec.SharedName, both.Spec.ReleasePolicy = s.pool, v1.ReleaseNever
	both.Spec.Namespaces = []string{s.namespace, s.namespace + "-green"}
	f.create(t, both)
	blue := s.newApp(k, asks(shared, k, s.pool), replicas)
	blue.system = true
	had := blue.start(t)
	blue.replicas = 0
	blue.apply(t)
	blue.expect(t, "blue to go down", want{same: had.held})
	beside := *s
	beside.namespace += "-green"
	green := beside.newApp(k, asks(shared, k, s.pool), replicas)
	green.system = true
	green.apply(t)
	if k == deployment {
		green.expect(t, "green to take what blue gave up", want{pods: replicas, same: had.held})
	} else {
		green.expect(t, "green to run beside what is kept for blue", want{pods: replicas, more: had.held})
	}
	blue.beside, blue.replicas = replicas, replicas
	blue.apply(t)
	w2 := want{pods: replicas}
	if k != deployment {
		w2.names = had.pods
	}
	again := blue.expect(t, "blue to run again", w2)
	blue.delete(t, metav1.DeletePropagationBackground)
	blue.keeps(t, "blue's end", want{same: again.held})
}

// passedOn: an app keeps its addresses in a pool that has many others free, which pods could take that come before
// those that they replace have gone.
func (f *fixture) passedOn(t *testing.T, k kind) {
	t.Helper()
	s := f.newSite(t, "passed-"+string(k), 8*replicas, sharedNodes)
	a := s.newApp(k, asks(immutable, k, s.pool), replicas)
	a.podAnnotations = map[string]string{slowly: "2s", inOrder: "true"}
	had := a.start(t)
	for _, op := range []operation{podDelete, forceDelete, rollInPlace, podDelete} {
		had = a.do(t, op, had)
	}
	if k == deployment {
		a.do(t, rollWithSurge, had)
	}
}

// expiry: what is kept for a while is free after that, and the same before.
func (f *fixture) expiry(t *testing.T, k kind) {
	t.Helper()
	s := f.newSite(t, "expiry-"+string(k), 8*replicas, sharedNodes)
	a := s.newApp(k, terms{timed, map[string]string{ownKeep: "1h"}}, replicas)
	had := a.start(t)
	a.replicas = 0
	a.apply(t)
	a.expect(t, "all to be kept", want{same: had.held})
	a.replicas = replicas
	a.apply(t)
	now := a.expect(t, "all to come again", a.scaledBack(had, 0))
	// Longer than both replicas are away after they were killed: a leader writes down until when.
	a.terms = terms{timed, map[string]string{ownKeep: "80s"}}
	a.rev++
	a.apply(t)
	a.expect(t, "the update to end", want{pods: replicas, gone: now.uids})
	a.replicas = 0
	a.apply(t)
	eventually(t, "an address to be kept for that long", func() error {
		var all v1.BCSNetIPList
		if err := f.admin.List(t.Context(), &all, client.MatchingFields{"spec.pool": s.pool}); err != nil {
			return err
		}
		var terms []string
		for _, ip := range all.Items {
			since, _ := store.ParseTime(ip.Status.UpdateTime)
			if until, _ := store.ParseTime(ip.Status.FixedIPExpiredTime); ip.Status.Status == v1.IPReserved &&
				until.Sub(since) == 80*time.Second {
				return nil
			}
			terms = append(terms, fmt.Sprintf("%s %s from %s to %s", ip.Name, ip.Status.Status, ip.Status.UpdateTime,
				ip.Status.FixedIPExpiredTime))
		}
		return fmt.Errorf("none has such a term: %s", strings.Join(terms, ", "))
	})
	a.expect(t, "all to be given back", want{})
}

// policyDropped: an app that does not want its addresses kept any more is updated in a pool that has no others: what
// its earlier pods kept goes back. When it wants them kept again, they are.
func (f *fixture) policyDropped(t *testing.T, k kind) {
	t.Helper()
	s := f.newSite(t, "dropped-"+string(k), replicas, sharedNodes)
	a := s.newApp(k, asks(immutable, k, s.pool), replicas)
	now := a.start(t)
	for _, policy := range []string{plain, immutable} {
		a.terms = asks(policy, k, s.pool)
		a.rev++
		a.apply(t)
		now = a.expect(t, "the update to end", want{pods: replicas, gone: now.uids})
	}
	a.replicas = 0
	a.apply(t)
	a.expect(t, "all to be given back", want{})
}

// mostRecentFirst: the next pod of an app takes the address that was given up last.
func (f *fixture) mostRecentFirst(t *testing.T) {
	t.Helper()
	s := f.newSite(t, "recent", 8*replicas, sharedNodes)
	a := s.newApp(deployment, asks(never, deployment, s.namespace), replicas)
	all := a.start(t).held
	var last picture
	for a.replicas > 0 {
		last, _ = a.look(t, int(a.replicas))
		a.replicas--
		a.apply(t)
		a.expect(t, "one pod to go", want{pods: int(a.replicas), same: all})
	}
	a.replicas = 1
	a.apply(t)
	now := a.expect(t, "a pod to come", want{pods: 1, same: all})
	for _, address := range now.pods {
		for _, given := range last.pods {
			if address != given {
				t.Errorf("it has %s, and %s was given up last", address, given)
			}
		}
	}
}

// slowEnd: the annotation is on the Deployment itself, and that is gone long before its pods have ended.
func (f *fixture) slowEnd(t *testing.T) {
	t.Helper()
	s := f.newSite(t, "slow", 8*replicas, sharedNodes)
	a := s.newApp(deployment, asks(never, deployment, s.namespace), replicas)
	a.onObject, a.podAnnotations = true, map[string]string{slowly: "25s"}
	had := a.start(t)
	a.delete(t, metav1.DeletePropagationBackground)
	a.expect(t, "all to be kept", want{same: had.held})
	a.apply(t)
	a.expect(t, "all to come again", a.scaledBack(had, 0))
}

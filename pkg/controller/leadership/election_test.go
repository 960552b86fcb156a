package leadership

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/bcsnet/bcsnet/pkg/controller/informers"
	"github.com/bcsnet/bcsnet/pkg/replica"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// voter is a replica as far as the election goes.
type voter struct {
	*Peers
	election  *election
	heartbeat *heartbeat
	ahead     atomic.Int64 // of the clock, ns
}

func newVoter(t *testing.T, cfg *rest.Config, name string) *voter {
	t.Helper()
	leads := NewTerms(slog.New(slog.DiscardHandler))
	key, err := replica.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	v := &voter{Peers: newPeers(replica.New(name, ""), key, leads)}
	v.now = func() time.Time { return time.Now().Add(time.Duration(v.ahead.Load())) }
	leases, err := cache.New(cfg, cache.Options{DefaultNamespaces: map[string]cache.Config{metav1.NamespaceDefault: {}}})
	if err != nil {
		t.Fatal(err)
	}
	background(t, func(ctx context.Context) { _ = leases.Start(ctx) })
	if _, err := informers.Watch(t.Context(), leases, &coordinationv1.Lease{},
		informers.Handler(v.set, v.remove)); err != nil {
		t.Fatal(err)
	}
	// a Lease passes on because it is released
	o := Config{Namespace: metav1.NamespaceDefault, Timing: Timing{time.Hour, time.Minute, 200 * time.Millisecond}}
	if v.election, err = newElection(cfg, o, v.Peers, leads, &Health{others: func() bool { return false }},
		leads.log); err != nil {
		t.Fatal(err)
	}
	v.heartbeat = &heartbeat{
		leases: v.election.client.Leases(o.Namespace), namespace: o.Namespace, peers: v.Peers, log: leads.log,
	}
	return v
}

// background runs something until the test ends, or stop is called.
func background(t *testing.T, do func(context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); do(ctx) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// TestElection: a leader whose part fails lets another lead, and leads again when that one ends.
func TestElection(t *testing.T) {
	cfg := controlplane.ForTest(t).Config
	first, second := newVoter(t, cfg, "first"), newVoter(t, cfg, "second")
	var failing atomic.Bool
	fail, terms := make(chan struct{}, 1), atomic.Int32{}
	first.leads.OnTerm(func(ctx context.Context) error {
		if terms.Add(1); failing.Load() {
			return errors.New("still broken")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-fail:
			return errors.New("broken")
		}
	})
	background(t, first.election.run)
	controlplane.Until(t, "the first one leads", first.Leading)
	stop := background(t, second.election.run)
	failing.Store(true)
	fail <- struct{}{}
	controlplane.Until(t, "the second one leads", second.Leading)
	controlplane.Until(t, "the first one follows", func() bool {
		who, ok := first.Leader()
		return ok && who.Name == "second" && !first.Leading()
	})
	failing.Store(false)
	stop()
	controlplane.Until(t, "the first one leads again", first.Leading)
	controlplane.Until(t, "another term begins after the first", func() bool { return terms.Load() >= 2 })

	t.Run("presence", func(t *testing.T) {
		gone, alive := newVoter(t, cfg, "gone"), newVoter(t, cfg, "alive")
		look := func(v *voter) (*coordinationv1.Lease, error) {
			return v.heartbeat.leases.Get(t.Context(), heartbeatName(v.self), metav1.GetOptions{})
		}
		for _, v := range []*voter{gone, alive} { // the first one tells nobody of itself
			if err := v.heartbeat.renew(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		controlplane.Until(t, "both are seen", func() bool { return len(first.Replicas()) == 3 })
		controlplane.Until(t, "two share a secret", func() bool {
			secret := gone.Secret(alive.self.ID())
			return len(secret) == 32 && bytes.Equal(secret, alive.Secret(gone.self.ID()))
		})
		if first.Secret("nobody_x") != nil || first.Secret("") != nil || first.Secret("other_"+alive.self.Life) != nil {
			t.Error("a secret is shared with nobody")
		}
		first.ahead.Store(int64(heartbeatKept))
		if n := len(first.Replicas()); n != 1 {
			t.Errorf("%d replicas are shown after %s of silence, want the one itself", n, heartbeatKept)
		}
		stop := background(t, func(ctx context.Context) { _ = alive.heartbeat.run(ctx) })
		controlplane.Until(t, "one is seen again", func() bool { return len(first.Replicas()) == 2 })
		background(t, func(ctx context.Context) { _ = first.heartbeat.sweep(ctx) })
		controlplane.Until(t, "the Lease of the one that is gone is removed", func() bool {
			_, err := look(gone)
			return apierrors.IsNotFound(err)
		})
		if _, err := look(alive); err != nil {
			t.Errorf("the Lease of the one that lives: %v", err)
		}
		stop()
		if _, err := look(alive); !apierrors.IsNotFound(err) {
			t.Errorf("the Lease of the one that ended in order: %v, want it gone", err)
		}
	})
}

package leadership

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"github.com/bcsnet/bcsnet/pkg/doctor"
)

// LeaseName is the Lease that the leader holds.
const LeaseName = doctor.ControllerName

// releaseTime bounds the release of the Lease at the end. Without the release, another replica leads only after the
// Lease has expired.
const releaseTime = 3 * time.Second

// election makes this replica stand for leader repeatedly. A replica that loses the Lease continues as a follower,
// whereas the manager's own election would end the process.
type election struct {
	client    coordinationclient.CoordinationV1Interface
	namespace string
	timing    Timing
	peers     *Peers
	leads     *Terms
	health    *Health
	log       *slog.Logger
}

// Timing has the times of kube-controller-manager's flags with the same names.
type Timing struct{ Lease, Renew, Retry time.Duration }

func newElection(cfg *rest.Config, o Config, p *Peers, l *Terms, h *Health, log *slog.Logger) (*election, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = o.Timing.Renew / 2 // a hanging API server must not use up the whole term
	client, err := coordinationclient.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &election{
		client: client, namespace: o.Namespace, peers: p, leads: l, health: h, log: log,
		timing: o.Timing,
	}, nil
}

// run stands for leader until the context ends, and then releases the Lease at once.
func (e *election) run(ctx context.Context) {
	quiet := klog.NewContext(ctx, logr.FromSlogHandler(e.log.Handler()).V(4)) // this package logs the leader itself
	for ctx.Err() == nil {
		e.health.recovered(ctx, e.timing.Lease) // a term that ends in its first second helps nobody
		if resigned := e.stand(quiet); resigned {
			select { // do not repeat a failure at once
			case <-ctx.Done():
			case <-time.After(e.timing.Retry):
			}
		}
	}
}

// stand runs one candidacy and the term that may follow. resigned reports whether a component of the leader failed.
func (e *election) stand(ctx context.Context) (resigned bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed atomic.Bool
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:          LeaseName,
		LeaseDuration: e.timing.Lease, RenewDeadline: e.timing.Renew, RetryPeriod: e.timing.Retry,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: LeaseName}, Client: e.client,
			Labels:     LeaseLabels(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.peers.self.Holder()},
		},
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(term context.Context) {
				e.leads.Lead(term, func() { failed.Store(true); cancel() })
			},
			OnStoppedLeading: func() {},
		},
		// ReleaseOnCancel would release a Lease that another replica has taken meanwhile.
	})
	if err != nil {
		panic(err) // Validate has checked the durations
	}
	var watching sync.WaitGroup
	watching.Go(func() { e.watch(ctx, cancel) })
	elector.Run(ctx)
	if ctx.Err() != nil { // nobody took the Lease away
		e.release(ctx)
	}
	cancel()
	watching.Wait()
	e.leads.ended()
	return failed.Load()
}

// watch ends a candidacy if the Lease has become free, because the next candidacy tries at once. It ends a term if
// another replica holds the Lease: the elector would otherwise continue until its renew deadline.
func (e *election) watch(ctx context.Context, end context.CancelFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.peers.changed:
		}
		holder := e.peers.holder()
		switch leading := e.leads.Leading(); {
		case !leading && holder == "":
			end()
		case leading && holder != "" && holder != e.peers.self.Holder() && e.lost(ctx):
			e.log.Warn("another replica holds the Lease", "holder", holder)
			end()
		}
	}
}

// lost reports whether another replica holds the Lease. It reads the Lease, because the watch may have delivered a
// state from before the term.
func (e *election) lost(ctx context.Context) bool {
	lease, err := e.client.Leases(e.namespace).Get(ctx, LeaseName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return false
	}
	holder := *lease.Spec.HolderIdentity
	return holder != "" && holder != e.peers.self.Holder()
}

// release gives up the Lease if this replica holds it, so that another one can lead at once.
func (e *election) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	leases := e.client.Leases(e.namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // a renewal may still be in progress
		lease, err := leases.Get(ctx, LeaseName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != e.peers.self.Holder() {
			return nil
		}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(""), new(int32(1))
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		e.log.Warn("the Lease was not released; another replica leads when it has run out", "error", err)
	}
}

// readyPoll is the interval in which a component checks whether the lists were received.
const readyPoll = 100 * time.Millisecond

// AwaitReady waits until the replica is ready. It returns false if the context ends first.
func AwaitReady(ctx context.Context, ready func() error) bool {
	if ready() == nil {
		return ctx.Err() == nil
	}
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
			if ready() == nil {
				return true
			}
		}
	}
}

// Every calls f now and then at each interval until the context ends.
func Every(ctx context.Context, interval time.Duration, f func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		f()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

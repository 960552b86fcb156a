package importer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

const (
	// lockTerm is the time without a renewal after which another run takes the Lease.
	lockTerm = 20 * time.Second
	// lockRenew is the time after which a run that cannot renew the Lease ends, lockRetry that between renewals.
	lockRenew, lockRetry = 12 * time.Second, 4 * time.Second
	// lockName is the name of the Lease, which the manifests make. bcsnet-operator may update it, but not create one.
	lockName = "bcsnet-import"
)

// lock is the Lease that one run at a time holds while it changes what another system withdraws. A nil lock, of a run
// that changes nothing, is held.
type lock struct {
	resourcelock.Interface

	name string
}

// withLock runs something that changes who allocates addresses. Its context ends when the lock is lost.
func withLock(ctx context.Context, s *app.App, do func(context.Context, *lock) error) error {
	if s.DryRun != app.DryRunNone {
		return do(ctx, nil)
	}
	cfg, err := s.Connect()
	if err != nil {
		return err
	}
	client, err := coordinationclient.NewForConfig(cfg)
	if err != nil {
		return err
	}
	standing := resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: resource.SystemNamespace, Name: lockName},
		Client:    client,
		LockConfig: resourcelock.ResourceLockConfig{
			Identity: s.ThisMachine() + "/" + uuid.NewString(),
		},
	}
	reading := standing // each remembers the version that it has read
	l := &lock{&reading, standing.LeaseMeta.Name}
	if err := l.exists(ctx, s); err != nil {
		return err
	}
	terms := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &standing, LeaseDuration: lockTerm, RenewDeadline: lockRenew, RetryPeriod: lockRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(term context.Context) { terms <- term }, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	quiet, end := context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	var running sync.WaitGroup
	running.Go(func() { elector.Run(quiet) })
	term, err := l.await(ctx, s, terms)
	if err == nil {
		err = do(term, l)
		if term.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("lease %s is lost: it could not be renewed, or another run has it: %w", l.name,
				errors.Join(term.Err(), l.check(ctx)))
		}
	}
	end()
	running.Wait()
	l.release(ctx)
	return err
}

// exists makes the Lease, held by nobody, if there is none: the manifests have it, and not every user may create one.
func (l *lock) exists(ctx context.Context, s *app.App) error {
	hint := "your user needs the ClusterRole bcsnet-operator, which may hold Lease %s"
	_, _, err := l.Get(ctx)
	if apierrors.IsNotFound(err) {
		hint = "Lease %s is missing; an administrator makes it again: bcsnetctl install"
		err = l.Create(ctx, resourcelock.LeaderElectionRecord{LeaseDurationSeconds: int(lockTerm.Seconds())})
	}
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsForbidden(err):
		return app.Refuse(ipam.ReasonForbidden, "%v", err).WithHint(hint, l.name)
	case apierrors.IsNotFound(err):
		return app.Refuse(ipam.ReasonForbidden, "Lease %s cannot be held: %v", l.name, err).
			WithHint("install bcsnet first")
	}
	return fmt.Errorf("lease %s: %w", l.name, resource.Explain(s, err))
}

// await waits until this run has the Lease, and refuses while another run renews it.
func (l *lock) await(ctx context.Context, s *app.App, terms <-chan context.Context) (context.Context, error) {
	var first *resourcelock.LeaderElectionRecord
	for {
		select {
		case term := <-terms:
			return term, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockRetry / 4):
		}
		now, _, err := l.Get(ctx)
		switch {
		case err != nil, now.HolderIdentity == "", now.HolderIdentity == l.Identity():
		case first == nil || first.HolderIdentity != now.HolderIdentity:
			s.Say.Wait("waiting to see whether %s still runs: it holds Lease %s", now.HolderIdentity, l.name)
			first = now
		case !first.RenewTime.Equal(&now.RenewTime):
			return nil, app.Refuse(app.ReasonLeaseChanged, "%s holds Lease %s since %s: one run at a time",
				now.HolderIdentity, l.name, s.Age(now.AcquireTime.Time)).
				WithHint("wait for its end: kubectl -n %s get lease %s", resource.SystemNamespace, l.name)
		}
	}
}

// check returns an error unless this run still has the Lease. Call it before each step.
func (l *lock) check(ctx context.Context) error {
	if l == nil {
		return nil
	}
	now, _, err := l.Get(ctx)
	if err == nil && now.HolderIdentity != l.Identity() {
		err = app.Refuse(app.ReasonLeaseChanged, "%s took Lease %s meanwhile", now.HolderIdentity, l.name).
			WithHint("run it again when that has ended: each step that was done counts")
	}
	return err
}

// release lets the next run begin at once, if this run still has the Lease. Without it the next run waits for a term.
func (l *lock) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockRenew)
	defer cancel()
	_ = wait.PollUntilContextCancel(ctx, time.Second/4, true, func(ctx context.Context) (bool, error) {
		now, _, err := l.Get(ctx)
		if err == nil && now.HolderIdentity == l.Identity() {
			now.HolderIdentity = ""
			err = l.Update(ctx, *now)
		}
		return err == nil, nil
	})
}

package importer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer/system"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// lock is a Lease for each system: one run at a time changes what the other system withdraws. A nil lock, of a run that
// changes nothing, is held.
type lock struct {
	api dynamic.ResourceInterface
	// name is that of the Lease, holder who has it.
	name, holder string
	// term is the time without a renewal after which another run may take it; retry is the time between renewals.
	term, retry time.Duration
}

// withLock runs something that changes who hands out addresses. Its context ends when the lock is lost.
func withLock(ctx context.Context, s *app.App, of system.System, do func(context.Context, *lock) error) error {
	if s.DryRun != app.DryRunNone {
		return do(ctx, nil)
	}
	c, err := s.Dynamic()
	if err != nil {
		return err
	}
	l := &lock{
		api:  c.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(resource.SystemNamespace),
		name: "bcsnet-import-" + of.Name, holder: s.ThisMachine() + "/" + uuid.NewString(),
		term: 20 * time.Second, retry: 5 * time.Second,
	}
	if err := l.acquire(ctx, s); err != nil {
		return err
	}
	held, lose := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() { l.renew(held, ended, lose) })
	err = do(held, l)
	close(ended)
	renewing.Wait()
	if lost := context.Cause(held); lost != nil && ctx.Err() == nil {
		err = lost
	}
	lose(nil)
	l.release(ctx)
	return err
}

// acquire takes the Lease. It takes over one that is not renewed for a term of this clock; no clock is compared with
// another one.
func (l *lock) acquire(ctx context.Context, s *app.App) error {
	var seen string
	var since time.Time
	for {
		o, lease, err := l.get(ctx)
		switch holder := holderOf(lease); {
		case apierrors.IsNotFound(err):
			err = l.create(ctx)
		case err != nil:
		case holder == "" || seen == o.GetResourceVersion() && time.Since(since) >= l.term:
			lease.AcquireTime = new(metav1.NowMicro())
			err = l.update(ctx, o, lease, l.holder)
		case seen == o.GetResourceVersion():
			err = errHeld
		case seen != "":
			age := "an unknown time"
			if lease.AcquireTime != nil {
				age = s.Age(lease.AcquireTime.Time)
			}
			return app.Refuse(app.ReasonLeaseChanged, "%s holds Lease %s since %s: one run at a time",
				holder, l.name, age).
				WithHint("wait for its end: kubectl -n %s get lease %s", resource.SystemNamespace, l.name)
		default:
			s.Say.Wait("waiting to see whether %s still runs: it holds Lease %s", holder, l.name)
			seen, since, err = o.GetResourceVersion(), time.Now(), errHeld
		}
		switch {
		case err == nil:
			return nil
		case apierrors.IsForbidden(err):
			return app.Refuse(ipam.ReasonForbidden, "%v", err).WithHint(
				"your user needs the ClusterRole bcsnet-operator, which may hold Lease %s", l.name)
		case apierrors.IsNotFound(err):
			return app.Refuse(ipam.ReasonForbidden, "Lease %s cannot be held: %v", l.name, err).
				WithHint("install bcsnet first")
		case !errors.Is(err, errHeld) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err):
			return fmt.Errorf("lease %s: %w", l.name, resource.Explain(s, err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(l.retry / 5):
		}
	}
}

// errHeld says that another run has the Lease, which perhaps has ended.
var errHeld = errors.New("another run holds it")

// check returns an error unless this run still has the Lease. Call it before each step.
func (l *lock) check(ctx context.Context) error {
	if l == nil {
		return nil
	}
	_, lease, err := l.get(ctx)
	if err == nil && holderOf(lease) != l.holder {
		err = app.Refuse(app.ReasonLeaseChanged, "%s took Lease %s meanwhile", holderOf(lease), l.name).
			WithHint("run it again when that has ended: each step that was done counts")
	}
	return err
}

// renew renews the Lease until the run has ended, and calls lose if it cannot for most of a term.
func (l *lock) renew(ctx context.Context, ended <-chan struct{}, lose context.CancelCauseFunc) {
	last := time.Now()
	for {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			return
		case <-time.After(l.retry):
		}
		try, cancel := context.WithTimeout(ctx, l.retry)
		o, lease, err := l.get(try)
		if err == nil && holderOf(lease) != l.holder {
			err = l.check(ctx)
		} else if err == nil {
			err = l.update(try, o, lease, l.holder)
		}
		cancel()
		var refusal *app.Failure
		switch {
		case err == nil:
			last = time.Now()
		case errors.As(err, &refusal), time.Since(last) > l.term-2*l.retry:
			lose(fmt.Errorf("lease %s is lost: %w", l.name, err))
			return
		}
	}
}

// release lets the next run begin at once.
func (l *lock) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.retry)
	defer cancel()
	if o, lease, err := l.get(ctx); err == nil && holderOf(lease) == l.holder {
		_ = l.update(ctx, o, lease, "") // else the next run waits for a term
	}
}

func holderOf(lease coordinationv1.LeaseSpec) string {
	if lease.HolderIdentity == nil {
		return ""
	}
	return *lease.HolderIdentity
}

func (l *lock) get(ctx context.Context) (*unstructured.Unstructured, coordinationv1.LeaseSpec, error) {
	var lease coordinationv1.Lease
	o, err := l.api.Get(ctx, l.name, metav1.GetOptions{})
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &lease)
	}
	return o, lease.Spec, err
}

func (l *lock) create(ctx context.Context) error {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	o.SetName(l.name)
	if err := l.fill(o, coordinationv1.LeaseSpec{AcquireTime: new(metav1.NowMicro())}, l.holder); err != nil {
		return err
	}
	_, err := l.api.Create(ctx, o, metav1.CreateOptions{FieldManager: app.ProgramName})
	return err
}

// update stores the Lease for a holder with the version that was read.
func (l *lock) update(
	ctx context.Context, o *unstructured.Unstructured, lease coordinationv1.LeaseSpec, holder string,
) error {
	if err := l.fill(o, lease, holder); err != nil {
		return err
	}
	_, err := l.api.Update(ctx, o, metav1.UpdateOptions{FieldManager: app.ProgramName})
	return err
}

func (l *lock) fill(o *unstructured.Unstructured, lease coordinationv1.LeaseSpec, holder string) error {
	lease.HolderIdentity, lease.RenewTime = new(holder), new(metav1.NowMicro())
	lease.LeaseDurationSeconds = new(int32(l.term / time.Second))
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&lease)
	if err != nil {
		return err
	}
	return unstructured.SetNestedMap(o.Object, spec, "spec")
}

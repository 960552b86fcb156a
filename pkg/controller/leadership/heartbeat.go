package leadership

import (
	"context"
	"errors"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationapply "k8s.io/client-go/applyconfigurations/coordination/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/bcsnet/bcsnet/pkg/replica"
)

// A replica renews its own Lease as often as a kubelet does. A killed replica is no longer listed after heartbeatTerm,
// and its Lease is removed after heartbeatKept.
const (
	heartbeatTerm  = 40 * time.Second
	heartbeatEvery = 10 * time.Second
	heartbeatKept  = 10 * time.Minute
)

// heartbeat renews the Lease by which other replicas know this one.
type heartbeat struct {
	leases    coordinationclient.LeaseInterface
	namespace string
	peers     *Peers
	log       *slog.Logger
}

func heartbeatName(i replica.Identity) string { return LeaseName + "-" + i.Life }

// run renews the Lease until the context ends, and then removes it.
func (p *heartbeat) run(ctx context.Context) error {
	failing := false
	Every(ctx, heartbeatEvery, func() {
		err := p.renew(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			p.log.Warn("the other replicas are not told of this one", "error", err)
		}
		failing = err != nil
	})
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	err := p.leases.Delete(last, heartbeatName(p.peers.self), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		p.log.Debug("the Lease of this replica stays until it is swept", "error", err)
	}
	return nil
}

func (p *heartbeat) renew(ctx context.Context) error {
	now := metav1.NowMicro()
	lease := coordinationapply.Lease(heartbeatName(p.peers.self), p.namespace).WithLabels(LeaseLabels()).
		WithAnnotations(map[string]string{
			keyAnnotation: p.peers.key.Public(), knowsAnnotation: SecondAttachments,
		}).WithSpec(coordinationapply.LeaseSpec().
		WithHolderIdentity(p.peers.self.Holder()).WithLeaseDurationSeconds(int32(heartbeatTerm / time.Second)).
		WithRenewTime(now))
	_, err := p.leases.Apply(ctx, lease, metav1.ApplyOptions{FieldManager: LeaseName, Force: true})
	return err
}

// sweep removes the Leases of killed replicas. It runs on the leader.
func (p *heartbeat) sweep(ctx context.Context) error {
	Every(ctx, heartbeatTerm, func() {
		var errs []error
		for name, version := range p.peers.stale(heartbeatKept) {
			err := p.leases.Delete(
				ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				errs = append(errs, err)
			}
		}
		if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
			p.log.Warn("Leases of replicas that are gone were not removed", "error", err)
		}
	})
	return nil
}

package allocator

import (
	"context"
	"errors"
	"time"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Migrations knows which virtual machines migrate live; the one of package kubevirt does.
type Migrations interface {
	// Off returns why no address gets a second attachment at present; empty where one may.
	Off() string
	// Denies returns why a pod is not the target of a live migration of the machine in another; empty where it is. Both
	// are as the API server has them.
	Denies(ctx context.Context, from, to workload.Pod) (why string, err error)
}

// stillThere takes the attachments out of a lease whose pods are no more. there says why the request cannot have the
// address of those that are left; nil where none is.
func (s *succession) stillThere(
	ctx context.Context, t *attempt, l lease.Lease,
) (left lease.Lease, there *ipam.Refusal, err error) {
	left = l
	for side := range l.Attachments() {
		err := s.noMore(ctx, t, side)
		refusal, refused := errors.AsType[*ipam.Refusal](err)
		switch {
		case err == nil && l.Other != nil:
			left, _ = lease.EndWhere(left, func(o lease.Lease) bool { return o.SameAttachment(side.Holder) },
				s.engine.leases.Now(), lease.Change{}, keepAsIs)
		case err == nil:
		case refused && refusal.Reason == ipam.ReasonClaimConflict:
			there = refusal
		default:
			return l, nil, err
		}
	}
	return left, there, nil
}

// keepAsIs leaves the last attachment of a lease to who takes the address over.
func keepAsIs(l lease.Lease, _ time.Time, _ lease.Change) (lease.Lease, bool) { return l, false }

// secondAttachment returns an address that a pod has as it is with the request's pod as its second attachment, where
// the virtual machine in the first one migrates to it. A caller that is not such a target gets the refusal that the
// first one is there.
func (s *succession) secondAttachment(
	ctx context.Context, t *attempt, l lease.Lease, there *ipam.Refusal,
) (next lease.Lease, err error) {
	from, to, err := s.ends(ctx, t, l)
	switch {
	case err != nil:
		return l, err
	case from.UID == "" || to.Migration.UID == "" || !to.Controller.IsMachine():
		return l, there
	case s.migrations == nil:
		return l, there
	}
	facts := earlierHolder(explain.MigrationDenied, t.Request, l)
	if off := s.migrations.Off(); off != "" {
		facts.Kind, facts.Because = explain.MigrationOff, []string{off}
		return l, ipam.RefuseFacts(ipam.ReasonClaimConflict, facts)
	}
	if l.Other != nil {
		facts.Because = []string{"pods " + l.Who() + " and " + l.Other.Who() + " have it already"}
		return l, ipam.RefuseFacts(ipam.ReasonClaimConflict, facts)
	}
	why, err := s.migrations.Denies(ctx, from, to)
	if err != nil {
		return l, readFailed(err)
	}
	if why != "" && !failpoint.Broken("migrating") {
		facts.Because = []string{why}
		return l, ipam.RefuseFacts(ipam.ReasonClaimConflict, facts)
	}
	h := t.holder
	h.PodUID, h.Termination, h.Slot, h.Given = to.UID, to.LongTermination(), l.Slot, s.answers.giveAgain(t, l)
	next, ok := lease.Attach(l, h, t.constraints.Retention, s.engine.leases.Now())
	if !ok {
		return l, there
	}
	return next, nil
}

// ends reads the pod that has an address and that of the request from the API server; a pod that is not the holder's
// any more, or not the request's, has no UID.
func (s *succession) ends(ctx context.Context, t *attempt, l lease.Lease) (from, to workload.Pod, err error) {
	if to, err = s.engine.pods.FindLive(ctx, t.Namespace, t.PodName, t.PodUID); err != nil {
		return from, to, unfit(t.Request, to, err)
	}
	if to.Migration.UID == "" || l.PodUID == "" {
		return from, to, nil // spares the others a read
	}
	from, err = s.engine.pods.FindLive(ctx, l.Namespace, l.PodName, l.PodUID)
	switch {
	case errors.Is(err, workload.ErrNotFound):
		return workload.Pod{}, to, nil
	case err != nil:
		return from, to, readFailed(err)
	}
	return from, to, nil
}

// notKept refuses a request whose second attachment the API server did not store: it drops fields that its CRD does not
// have. The address is as it was.
func notKept(t *attempt, l lease.Lease) *ipam.Refusal {
	facts := earlierHolder(explain.MigrationOff, t.Request, l)
	facts.Because = []string{"the CRD BCSNetIP is of an earlier release"}
	return ipam.RefuseFacts(ipam.ReasonClaimConflict, facts)
}

package claim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/controller/conditions"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// create creates a claim by the policy of a pod that has an address of it. again is the time after which to retry if
// the API server refuses the claim; 0 otherwise.
func (r *Reconciler) create(ctx context.Context, name string, leases []lease.Lease) (again time.Duration, err error) {
	p, ok := r.wantedBy(ctx, name, leases)
	if !ok || p.Named {
		return 0, nil
	}
	key := nameOf(name)
	o := &v1.BCSNetIPClaim{Spec: claim.Derive(p, r.Owners.APIVersion)}
	o.Namespace, o.Name = key.Namespace, key.Name
	o.Labels = map[string]string{claim.Managed: "true"}
	o.Finalizers = []string{v1.ClaimFinalizer}
	switch err := r.Client.Create(ctx, o); {
	case err == nil, apierrors.IsAlreadyExists(err):
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return 0, r.reclaimAll(ctx, leases, "its namespace is gone")
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		r.States.Missing(p)
		r.emitNotMade(ctx, name, leases, err)
		return notMadeDelay, nil
	default:
		r.States.Missing(p)
		return 0, fmt.Errorf("making claim %s: %w", name, err)
	}
	r.Log.Info("made a claim from annotations", "claim", name, "policy", string(p.Release), "workload",
		p.Workload.String())
	return 0, nil
}

const (
	// notMadeDelay is the time between two attempts to create a claim that the API server refuses: somebody has to
	// change an admission policy, a role or an annotation first.
	notMadeDelay = time.Minute
	// notMadePods bounds the pods that get an event about one claim.
	notMadePods = 5
)

// emitNotMade creates events on pods that have addresses of a claim that the API server refuses. The addresses stay
// kept after the pods end, and nothing else shows for how long.
func (r *Reconciler) emitNotMade(ctx context.Context, name string, leases []lease.Lease, why error) {
	r.Log.Warn("the API server refuses a claim that annotations ask for", "claim", name, "error", why)
	told := 0
	for _, l := range leases {
		pod, there := r.pod(ctx, l)
		if !there {
			continue
		}
		about := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name,
			UID: types.UID(pod.UID)}}
		r.Events.Eventf(about, nil, corev1.EventTypeWarning, v1.ReasonClaimNotMade, "MakeClaim", "%s",
			conditions.Clip(fmt.Sprintf(
				"the API server refuses claim %s, which the pod's annotations ask for; it is tried again every %s: %v",
				name, notMadeDelay, why), conditions.MaxNote))
		if told++; told == notMadePods {
			return
		}
	}
}

// reclaimAll returns the kept addresses of leases whose claim no longer exists, and makes the others return when their
// pods end.
func (r *Reconciler) reclaimAll(ctx context.Context, leases []lease.Lease, why string) error {
	for _, l := range leases {
		var err error
		if l.IsRetained() {
			err = r.apply(ctx, nil, claim.Step{Lease: l, Free: true, Why: why})
		} else {
			err = r.changeRetention(ctx, l, lease.Retention{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wantedBy returns the policy for creating a claim that has addresses.
func (r *Reconciler) wantedBy(ctx context.Context, name string, leases []lease.Lease) (p workload.Policy, ok bool) {
	p, ok = r.States.popWanted(name)
	if len(leases) == 0 {
		return p, false
	}
	if now, found := r.policyOf(ctx, name, leases); found {
		return now, true
	}
	for _, l := range leases { // an existing pod that released its address has the same policy
		if pod, found := r.podNamed(ctx, l); found && !ok && l.State == lease.Reserved {
			now, err := r.Policies.Resolve(ctx, pod.At(l.IfName, r.Index.Pools.NetworkOf(l)))
			if err == nil && now.Claim == name {
				return now, true
			}
		}
	}
	return p, ok
}

// policyOf returns the policy of a pod that has an address of a claim, if a pod exists whose policy names the claim.
func (r *Reconciler) policyOf(ctx context.Context, name string, leases []lease.Lease) (p workload.Policy, ok bool) {
	for _, l := range leases {
		if l.State != lease.Active {
			continue
		}
		pod, found := r.pod(ctx, l)
		if !found {
			continue
		}
		if p, err := r.Policies.Resolve(ctx, pod.At(l.IfName, r.Index.Pools.NetworkOf(l))); err == nil &&
			p.Claim == name {
			return p, true
		}
	}
	return p, false
}

// pod returns the pod of a lease from the cache.
func (r *Reconciler) pod(ctx context.Context, l lease.Lease) (pod workload.Pod, found bool) {
	pod, found = r.podNamed(ctx, l)
	return pod, found && pod.UID == l.PodUID && !pod.Ended
}

// podNamed returns the pod with a lease's pod name, whatever its UID.
func (r *Reconciler) podNamed(ctx context.Context, l lease.Lease) (pod workload.Pod, found bool) {
	var o corev1.Pod
	if l.PodName == "" || r.Client.Get(ctx, types.NamespacedName{Namespace: l.Namespace, Name: l.PodName}, &o) != nil {
		return pod, false
	}
	return workload.FromObject(&o), true
}

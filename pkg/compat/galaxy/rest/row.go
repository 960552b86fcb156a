package rest

import (
	"context"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// row is a held address, with the data for galaxy's form.
type row struct {
	FloatingIP
	addr  netip.Addr
	lease lease.Lease
	// owner is the holder if it is not a pod; podUID is the UID of the pod that has the address.
	owner, podUID string
	updated       time.Time
	// kept reports whether a claim keeps the address and nobody has it; anybody whether it is kept for no particular
	// pod.
	kept, anybody bool
}

// view makes rows. It reads each claim only once, so one view serves one request.
type view struct {
	*Service
	ctx    context.Context
	claims map[string]*terms
}

// terms are the values that a claim determines for its addresses.
type terms struct {
	workload workload.Workload
	policy   int
	shared   string
}

func (s *Service) view(ctx context.Context) *view {
	return &view{s, ctx, map[string]*terms{}}
}

// Galaxy's numbers of policies.
const (
	withPod = iota
	immutable
	never
)

// row returns all data of an address except the workload of its pod.
func (v *view) row(l lease.Lease) row {
	r := row{
		FloatingIP: FloatingIP{IP: l.Addr.String(), Namespace: l.Namespace, PodName: l.PodName},
		addr:       l.Addr, lease: l, owner: l.Owner, podUID: l.PodUID, updated: l.Updated, kept: l.IsRetained(),
		anybody: l.PodPrimaryKey == "",
	}
	switch {
	case l.Claim != "":
		t := v.terms(l)
		r.PoolName, r.Policy = t.shared, t.policy
		if t.workload.Kind != "" {
			r.setApp(t.workload)
		}
	case l.State == lease.Reserved: // an operator set it aside
		r.Policy = never
	}
	return r
}

// setApp sets the workload for whose pods the address is.
func (r *row) setApp(w workload.Workload) {
	r.AppName, r.AppType = w.Name, strings.ToLower(w.Kind)
	r.IsDeployment = r.AppType == deployment
	if r.Namespace == "" {
		r.Namespace = w.Namespace
	}
}

// terms returns the terms of a lease's claim. If the claim does not exist yet, they come from the lease and its pod.
func (v *view) terms(l lease.Lease) *terms {
	if t := v.claims[l.Claim]; t != nil {
		return t
	}
	t := v.read(l)
	v.claims[l.Claim] = t
	return t
}

func (v *view) read(l lease.Lease) *terms {
	namespace, name, _ := strings.Cut(l.Claim, "/")
	var o v1.BCSNetIPClaim
	if v.Cached.Get(v.ctx, types.NamespacedName{Namespace: namespace, Name: name}, &o) == nil {
		c, _ := claim.FromObject(&o) // errors in its addresses do not matter here
		return &terms{workload: c.Workload, policy: policyOf(c.Release), shared: o.Spec.SharedName}
	}
	if pod, ok := v.pod(l.Namespace, l.PodName); ok && l.State == lease.Active {
		at := workload.FromObject(pod).At(l.IfName, v.Index.Pools.NetworkOf(l))
		if p, err := v.Policies.Resolve(v.ctx, at); err == nil && p.Claim == l.Claim {
			t := &terms{policy: policyOf(v1.ReleasePolicy(p.Release)), shared: p.Shared}
			if p.Shared == "" {
				t.workload = p.Workload
			}
			return t
		}
	}
	t := &terms{}
	if l.Fixed {
		t.policy = immutable
	}
	if shared := workload.SharedName(name); namespace == v.Namespace && shared != "" {
		t.policy, t.shared = never, shared
	}
	return t
}

func policyOf(p v1.ReleasePolicy) int {
	switch p {
	case v1.ReleaseWithPod:
		return withPod
	case v1.ReleaseNever:
		return never
	default: // Timed ends by itself, too
		return immutable
	}
}

// pod returns a pod from the cache. The pod is shared, so callers must not change it.
func (v *view) pod(namespace, name string) (*corev1.Pod, bool) {
	if name == "" {
		return nil, false
	}
	var o corev1.Pod
	err := v.Cached.Get(v.ctx, client.ObjectKey{Namespace: namespace, Name: name}, &o)
	return &o, err == nil
}

// findApp finds the workload of an address if its claim names none.
func (v *view) findApp(r *row) {
	if r.AppName != "" {
		return
	}
	if o, ok := v.pod(r.Namespace, r.PodName); ok {
		if pod := workload.FromObject(o); r.podUID == "" || pod.UID == r.podUID {
			r.setApp(v.Owners.Known(pod))
		}
	}
}

// deleted is the status of an address whose pod no longer exists.
const deleted = "Deleted"

// finish adds the current state: when the address changed, the status of its pod, and whether it can be released.
func (v *view) finish(r *row) {
	v.findApp(r)
	r.UpdateTime = store.FormatTime(r.updated)
	r.Status, r.Releasable = v.status(r)
}

// status returns the status of an address's pod, and whether the address can be released. Addresses that were set
// aside, or whose holder is not a pod, cannot be released here.
func (v *view) status(r *row) (status string, releasable bool) {
	switch {
	case r.owner != "":
		return "", false
	case r.PodName == "":
		return "", r.kept
	}
	o, ok := v.pod(r.Namespace, r.PodName)
	if !r.kept {
		d, err := v.Gone(v.ctx, r.lease, false)
		releasable = err == nil && d.Verdict == gone.Gone
		if !ok || d.Check == gone.PodReplaced {
			return deleted, releasable
		}
		return string(o.Status.Phase), releasable
	}
	if !ok {
		return deleted, true
	}
	// An existing pod without an address may be about to take the one that is kept for it.
	pod := workload.FromObject(o)
	others := len(v.Index.Leases.ByAttachment(lease.Holder{
		Namespace: pod.Namespace, PodName: pod.Name, PodUID: pod.UID,
	})) > 0
	return string(o.Status.Phase), pod.Ended || others
}

package view

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Lineage connects a pod to its addresses: workload, policy, claims, leases and pools.
type Lineage struct {
	// key names the pod; empty for an address that no pod had.
	key types.NamespacedName
	// pod is nil if it is gone. phase is the phase in its status.
	pod   *workload.Pod
	phase string
	// interfaces has the terms of its interfaces. policy and wrong are those of the first one.
	interfaces []*interfaceTerms
	policy     workload.Policy
	wrong      error
	// annotations are the pod's. ignored are those of the pod, its workload and namespace that have no effect but look
	// as if they had.
	annotations map[string]string
	ignored     []workload.Ignored
	Leases      []lease.Lease
	// claims and pools are those that the leases and the policy name; nil if they do not exist.
	claims map[string]*v1.BCSNetIPClaim
	pools  map[string]*v1.BCSNetPool
}

// Has reports whether the pod has an address.
func (t *Lineage) Has(a netip.Addr) bool {
	return slices.ContainsFunc(t.Leases, func(l lease.Lease) bool { return l.Addr == a })
}

// LineageOf traces a pod by its name. If a lease is given, a pod of that name that cannot hold it counts as gone.
func LineageOf(ctx context.Context, s *app.App, key types.NamespacedName, of *lease.Lease) (*Lineage, error) {
	t := &Lineage{key: key}
	if err := findPod(ctx, s, t); err != nil {
		return nil, err
	}
	found, err := resource.HeldLeases(ctx, s, resource.LeaseQuery{Namespace: key.Namespace, Pod: key.Name},
		func(l lease.Lease) bool { return l.State != lease.Available })
	if err != nil {
		return nil, err
	}
	leases, err := s.Leases()
	if err != nil {
		return nil, err
	}
	may := func(l lease.Lease) bool {
		check, _ := gone.Record(l, t.pod, func(lease.Lease, string) []lease.Lease { return found }, leases.Now())
		return check != gone.PodReplaced
	}
	if t.pod != nil && of != nil && !may(*of) {
		t.pod, t.phase, t.annotations = nil, "", nil
	}
	for _, l := range found {
		if t.pod == nil || may(l) {
			t.Leases = append(t.Leases, l)
		}
	}
	found = t.Leases
	if t.pod == nil {
		if len(found) == 0 {
			return nil, app.Refuse(ipam.ReasonPodNotFound, "there is no pod %s in namespace %s, and no address of one",
				key.Name, key.Namespace).
				WithHint("search the addresses and their history: bcsnetctl ip find %s", key.Name)
		}
		return t, t.Fill(ctx, s)
	}
	resolver, err := resource.NewResolver(s)
	if err != nil {
		return nil, err
	}
	pools, err := resource.AllPools(ctx, s)
	if err != nil {
		return nil, err
	}
	resolver.Index = index.New()
	if err := resource.SetNamespaces(ctx, s, resolver.Index, pools); err != nil {
		return nil, err
	}
	resource.SetPools(resolver.Index, pools, s.Now())
	if err := t.resolve(ctx, s, resolver); err != nil {
		return nil, err
	}
	if t.ignored, err = resolver.Owners.Ignored(ctx, *t.pod, t.annotations, t.policy.Workload); err != nil {
		// The rest of the output does not depend on these.
		s.Say.Warn("it is not known whether annotations are misspelt: %v", resource.Explain(s, err))
	}
	for _, i := range t.policy.Ignored {
		if i.Target != "" { // the others are among those
			t.ignored = append(t.ignored, i)
		}
	}
	return t, t.Fill(ctx, s)
}

// findPod reads the pod of a lineage.
func findPod(ctx context.Context, s *app.App, t *Lineage) error {
	c, err := s.Dynamic()
	if err != nil {
		return err
	}
	o, err := c.Resource(resource.PodResource()).Namespace(t.key.Namespace).Get(ctx, t.key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return resource.Explain(s, err)
	}
	var stored corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &stored); err != nil {
		return fmt.Errorf("pod %s cannot be read: %w", t.key, err)
	}
	pod := workload.FromObject(&stored)
	t.pod, t.phase, t.annotations = &pod, string(stored.Status.Phase), stored.Annotations
	return nil
}

// Fill reads the claims and pools that the leases and the policy name.
func (t *Lineage) Fill(ctx context.Context, s *app.App) error {
	named := slices.Clone(t.Leases)
	for _, i := range t.interfaces {
		if i.policy.Claim != "" {
			named = append(named, lease.Lease{Retention: lease.Retention{Claim: i.policy.Claim}})
		}
	}
	t.claims, t.pools = resource.ClaimsOfLeases(ctx, s, named), map[string]*v1.BCSNetPool{}
	all, err := resource.AllPools(ctx, s)
	for _, p := range all {
		t.pools[p.Name] = p.BCSNetPool
	}
	return err
}

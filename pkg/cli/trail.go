package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// trail is the way from a pod to its addresses.
type trail struct {
	// key names the pod; zero for an address that no pod had.
	key types.NamespacedName
	// pod is as it was read; nil where it is gone. phase is what its status says.
	pod   *workload.Pod
	phase string
	// policy is what its annotations come to, wrong why they come to nothing.
	policy workload.Policy
	wrong  error
	// annotations are the pod's, ignored what of them, and of its workload's and namespace's, says nothing although it looks so.
	annotations map[string]string
	ignored     []workload.Ignored
	leases      []ipam.Lease
	// claims and pools are those that the leases and the policy name; nil for one that is not there.
	claims map[string]*v1.BCSNetIPClaim
	pools  map[string]*v1.BCSNetPool
}

func (t *trail) has(a netip.Addr) bool {
	return slices.ContainsFunc(t.leases, func(l ipam.Lease) bool { return l.Addr == a })
}

// trailOf follows a pod by its name; with a lease, it is the pod that may have that, and no other of the name.
func (s *session) trailOf(ctx context.Context, key types.NamespacedName, of *ipam.Lease) (*trail, error) {
	t := &trail{key: key}
	if err := s.findPod(ctx, t); err != nil {
		return nil, err
	}
	found, err := s.held(ctx, leaseQuery{namespace: key.Namespace, pod: key.Name}, func(l ipam.Lease) bool { return l.State != ipam.Available })
	if err != nil {
		return nil, err
	}
	leases, err := s.leases()
	if err != nil {
		return nil, err
	}
	may := func(l ipam.Lease) bool {
		check, _ := gone.Record(l, t.pod, func(ipam.Lease, string) []ipam.Lease { return found }, leases.Now())
		return check != gone.PodReplaced
	}
	if t.pod != nil && of != nil && !may(*of) {
		t.pod, t.phase, t.annotations = nil, "", nil
	}
	for _, l := range found {
		if t.pod == nil || may(l) {
			t.leases = append(t.leases, l)
		}
	}
	found = t.leases
	if t.pod == nil {
		if len(found) == 0 {
			return nil, refuse(ipam.ReasonPodNotFound, "there is no pod %s in namespace %s, and no address of one", key.Name, key.Namespace).
				withHint("find addresses by what they had to do with: bcsnetctl ip find %s", key.Name)
		}
		return t, s.fillTrail(ctx, t)
	}
	resolver, err := s.resolver()
	if err != nil {
		return nil, err
	}
	t.policy, t.wrong = resolver.Resolve(ctx, *t.pod)
	if _, refused := errors.AsType[*ipam.Refusal](t.wrong); t.wrong != nil && !refused {
		return nil, s.explain(t.wrong)
	}
	if t.ignored, err = resolver.Owners.Ignored(ctx, *t.pod, t.annotations, t.policy.Workload); err != nil {
		s.say.warn("it is not known whether annotations are misspelt: %v", s.explain(err)) // what else there is to tell does not depend on that
	}
	return t, s.fillTrail(ctx, t)
}

// findPod reads the pod of a trail.
func (s *session) findPod(ctx context.Context, t *trail) error {
	c, err := s.dynamic()
	if err != nil {
		return err
	}
	o, err := c.Resource(podResource()).Namespace(t.key.Namespace).Get(ctx, t.key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return s.explain(err)
	}
	var stored corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &stored); err != nil {
		return fmt.Errorf("pod %s cannot be read: %w", t.key, err)
	}
	pod := workload.FromObject(&stored)
	t.pod, t.phase, t.annotations = &pod, string(stored.Status.Phase), stored.Annotations
	return nil
}

// fillTrail reads the claims and pools that are named.
func (s *session) fillTrail(ctx context.Context, t *trail) error {
	named := slices.Clone(t.leases)
	if t.policy.Claim != "" {
		named = append(named, ipam.Lease{Retention: ipam.Retention{Claim: t.policy.Claim}})
	}
	t.claims, t.pools = s.claimsOf(ctx, named), map[string]*v1.BCSNetPool{}
	all, err := s.readPools(ctx)
	for _, p := range all {
		t.pools[p.Name] = p.BCSNetPool
	}
	return err
}

// resolver finds policies by reads from the API server, as the user.
func (s *session) resolver() (*workload.Resolver, error) {
	cfg, err := s.connect()
	if err != nil {
		return nil, err
	}
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, s.configProblem(err)
	}
	owners, err := workload.NewOwners(cfg, h, s.now, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, s.configProblem(err)
	}
	api, err := s.claims()
	if err != nil {
		return nil, err
	}
	return &workload.Resolver{Owners: owners, Namespace: systemNamespace, ClaimsFor: api.madeFor}, nil
}

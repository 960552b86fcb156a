package claim

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"go4.org/netipx"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Policies finds the policy of a pod; workload.Resolver is one.
type Policies interface {
	Resolve(ctx context.Context, pod workload.Pod) (workload.Policy, error)
}

// ConstraintsFinder finds the constraints of pods for an allocator.
type ConstraintsFinder struct {
	Policies Policies
	// Claims reads claims, usually from a cache.
	Claims client.Reader
	Index  *index.Index
	// Asked is called with the policy of every pod. Missing is called with the policies whose claim does not exist and
	// must be created. Both may be nil.
	Asked, Missing func(workload.Policy)
	// Ignored is called with annotations of a pod that have no effect although they look like bcsnet's; may be nil.
	Ignored func(workload.Pod, []workload.Ignored)

	parsed parsed
}

// Of returns the constraints of a pod, from its annotations, its workload's annotations, and its claim.
func (f *ConstraintsFinder) Of(ctx context.Context, pod workload.Pod) (allocator.Constraints, error) {
	p, err := f.Policies.Resolve(ctx, pod)
	if err != nil {
		return allocator.Constraints{}, err
	}
	if f.Asked != nil {
		f.Asked(p)
	}
	if f.Ignored != nil && len(p.Ignored) > 0 {
		f.Ignored(pod, p.Ignored)
	}
	return f.of(ctx, pod, p)
}

func (f *ConstraintsFinder) of(
	ctx context.Context, pod workload.Pod, p workload.Policy,
) (allocator.Constraints, error) {
	constraints := allocator.Constraints{
		Pools: p.Pools, Sets: p.Sets, Gateway: p.Gateway, Families: p.Families, IfName: p.IfName, Room: p.Replicas,
	}
	if refusal := f.fits(pod, p); refusal != nil {
		return constraints, refusal
	}
	if p.Claim == "" {
		return constraints, nil
	}
	constraints.Retention = lease.Retention{
		Claim: p.Claim, PodPrimaryKey: p.Identity, Fixed: p.Release != workload.ReleaseWithPod,
	}
	c, found, err := f.claim(ctx, p)
	switch {
	case err != nil:
		return constraints, err
	case !found, c.Managed && c.Deleting && !p.Named: // the controller creates it, or creates it again
		if f.Missing != nil {
			f.Missing(p)
		}
		return constraints, nil
	}
	if f.elsewhere(c, pod, p) {
		constraints.Retention = lease.Retention{}
		return constraints, nil
	}
	if refusal := allows(c, pod, p); refusal != nil {
		return constraints, refusal
	}
	constraints.Fixed, constraints.Room = c.Release != v1.ReleaseWithPod && !c.Deleting, c.Room()
	if len(constraints.Pools) == 0 {
		constraints.Pools = c.Pools
	}
	if len(constraints.Sets) == 0 && c.Addresses != nil {
		constraints.Sets = []*netipx.IPSet{c.Addresses}
	}
	return constraints, nil
}

// elsewhere reports whether a claim named for the whole pod has only addresses of other networks than the interface's:
// then the claim is for another interface.
func (f *ConstraintsFinder) elsewhere(c Claim, pod workload.Pod, p workload.Policy) bool {
	if !p.Named || !p.PodWideClaim {
		return false
	}
	scope := pod.Scope()
	return len(c.Pools) > 0 && len(f.Index.Pools.PoolsInScope(scope, c.Pools)) == 0 ||
		c.Addresses != nil && f.Index.Pools.SetElsewhere(scope, c.Addresses, c.Pools)
}

// claim returns the claim of a policy, if it exists. A claim that an annotation names must exist.
func (f *ConstraintsFinder) claim(ctx context.Context, p workload.Policy) (c Claim, found bool, err error) {
	namespace, name, _ := strings.Cut(p.Claim, "/")
	var o v1.BCSNetIPClaim
	// The object is only read: a copy of its addresses would be most of the work.
	err = f.Claims.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &o, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err) && source(p, "Claim").Key == workload.OwnerField:
		return c, false, ipam.Refuse(ipam.ReasonClaimNotFound, "claim %s, which was for %s, is gone", p.Claim,
			p.Workload).
			WithHint("ask again in a moment")
	case apierrors.IsNotFound(err) && p.Named:
		return c, false, ipam.RefuseFacts(ipam.ReasonClaimNotFound, explain.Facts{
			Kind: explain.NoSuchClaim, Claim: p.Claim, By: Source(p, "Claim"), Namespace: namespace,
		})
	case apierrors.IsNotFound(err):
		return c, false, nil
	case err != nil:
		return c, false, err
	}
	if c, err = f.parsed.of(&o); err != nil {
		return c, false, ipam.Refuse(ipam.ReasonClaimConflict, "claim %s cannot be used: %v", p.Claim, err).
			WithHint("correct it: kubectl edit bcsnetipclaim -n %s %s", namespace, name)
	}
	return c, true, nil
}

// allows returns the refusal if a pod may not use a claim with its policy; nil if it may.
func allows(c Claim, pod workload.Pod, p workload.Policy) *ipam.Refusal {
	switch {
	case !c.Serves(pod.Namespace):
		return ipam.Refuse(ipam.ReasonClaimConflict, "claim %s does not serve namespace %s of pod %s/%s", c.Name,
			pod.Namespace, pod.Namespace, pod.Name).
			WithHint("add the namespace to spec.namespaces of the claim")
	case p.Named && c.Deleting:
		return ipam.Refuse(ipam.ReasonClaimConflict, "claim %s is being deleted", c.Name).WithHint("name another claim")
	case p.Named && c.Workload.Kind != "" && (c.Workload.Group != p.Workload.Group ||
		c.Workload.Kind != p.Workload.Kind ||
		c.Workload.Namespace != p.Workload.Namespace || c.Workload.Name != p.Workload.Name):
		return ipam.Refuse(ipam.ReasonClaimConflict, "claim %s is for %s, pod %s/%s is of %s", c.Name, c.Workload,
			pod.Namespace, pod.Name, p.Workload).
			WithHint("name another claim, or make one without an owner")
	case !p.Named && c.Workload.Kind != "" && (c.Workload.Group != p.Workload.Group ||
		c.Workload.Kind != p.Workload.Kind):
		return ipam.Refuse(ipam.ReasonClaimConflict,
			"claim %s has the name of the claim of %s, and is for %s of group %q",
			c.Name, p.Workload, c.Workload, c.Workload.Group).
			WithHint("name a claim of its own with the annotation networkextension.bkbcs.tencent.com/claim")
	case p.Named && !agrees(c, p):
		return ipam.Refuse(ipam.ReasonClaimConflict, "claim %s has the policy %s, %s says another", c.Name, c.policy(),
			policySource(p)).WithHint("remove one of the two")
	case p.Named && c.Addresses != nil && slices.ContainsFunc(p.Sets,
		func(s *netipx.IPSet) bool { return !within(s, c.Addresses) }):
		return ipam.Refuse(ipam.ReasonClaimConflict, "claim %s has other addresses than %s", c.Name, Source(p, "Sets")).
			WithHint("add them to spec.addresses of the claim, or remove the annotation")
	case len(p.Pools) > 0 && len(c.Pools) > 0 && !slices.Equal(p.Pools, c.Pools) && !c.Managed:
		return ipam.Refuse(ipam.ReasonClaimConflict, "claim %s is for pool %s, %s for pool %s", c.Name,
			strings.Join(c.Pools, ","), Source(p, "Pool"), strings.Join(p.Pools, ",")).WithHint("remove one of the two")
	}
	return nil
}

// agrees reports whether a named claim has the policy that bcsnet's own annotations of the pod give. Annotations of
// other systems may differ: the claim's policy counts.
func agrees(c Claim, p workload.Policy) bool {
	if !workload.IsOwn(source(p, "Release").Key) && !workload.IsOwn(source(p, "Keep").Key) {
		return true
	}
	return v1.ReleasePolicy(p.Release) == c.Release && (source(p, "Keep").Key == "" || p.Keep == c.Keep)
}

// policySource returns the annotation that gave the policy, as text.
func policySource(p workload.Policy) string {
	if source(p, "Release").Key == "" {
		return Source(p, "Keep")
	}
	return Source(p, "Release")
}

// policy returns the claim's release policy as text.
func (c Claim) policy() string {
	if c.Release == v1.ReleaseTimed {
		return string(c.Release) + " " + explain.FormatSpan(c.Keep)
	}
	return string(c.Release)
}

// within reports whether a set is part of another one.
func within(s, in *netipx.IPSet) bool {
	return !slices.ContainsFunc(s.Ranges(), func(r netipx.IPRange) bool { return !in.ContainsRange(r) })
}

// fits refuses addresses whose pool has another prefix length than the annotation gives, and a gateway outside the
// pool's subnet.
func (f *ConstraintsFinder) fits(pod workload.Pod, p workload.Policy) *ipam.Refusal {
	for _, r := range slices.Concat(p.Requests, p.Lengths) {
		name, _ := f.Index.Pools.PoolOf(r.Addr())
		if pool, ok := f.Index.Pools.Get(name); ok && !r.IsSingleIP() && pool.Plan.Subnet.Bits() != r.Bits() {
			return ipam.Refuse(ipam.ReasonClaimConflict, "%s has the mask /%d, and pool %s of %s the mask /%d",
				Source(p, "Sets"), r.Bits(), name, r.Addr(), pool.Plan.Subnet.Bits()).
				WithHint("write %s, or %s/%d", r.Addr(), r.Addr(), pool.Plan.Subnet.Bits())
		}
	}
	if p.Mask == 0 && !p.Gateway.IsValid() {
		return nil
	}
	for _, s := range p.Sets {
		for _, r := range s.Ranges() {
			name, _ := f.Index.Pools.PoolOf(r.From())
			pool, ok := f.Index.Pools.Get(name)
			switch {
			case !ok:
			case p.Mask != 0 && pool.Plan.Subnet.Bits() != p.Mask:
				return ipam.Refuse(ipam.ReasonClaimConflict, "%s has the mask /%d, and pool %s of %s the mask /%d",
					Source(p, "Sets"), p.Mask, name, r.From(), pool.Plan.Subnet.Bits()).
					WithHint("write the mask of the pool")
			case unreachable(p.Gateway, pool.Plan.Subnet):
				return ipam.Refuse(ipam.ReasonClaimConflict,
					"%s is not in the subnet %s of pool %s, which has %s for pod %s/%s",
					Source(p, "Gateway"), pool.Plan.Subnet, name, r.From(), pod.Namespace, pod.Name).
					WithHint("name a gateway of that subnet, or none")
			}
		}
	}
	return nil
}

func unreachable(gateway netip.Addr, subnet netip.Prefix) bool {
	return gateway.IsValid() && gateway.Is4() == subnet.Addr().Is4() && !ipaddr.Reaches(subnet, gateway)
}

// Source returns the annotation that gave a field of a policy, as text.
func Source(p workload.Policy, field string) string {
	s := source(p, field)
	if s.Key == "" {
		return "its policy"
	}
	return s.String()
}

func source(p workload.Policy, field string) workload.Source {
	for _, s := range p.Sources {
		if s.Gave == field {
			return s
		}
	}
	return workload.Source{}
}

// maxParsed bounds the number of cached parsed claims. Beyond it, all are parsed again.
const maxParsed = 16_384

// parsed caches parsed claims, because hundreds of pods may use one claim with a thousand addresses. The zero value is
// ready for use.
type parsed struct {
	mu     sync.Mutex
	claims map[types.UID]parsedClaim
}

type parsedClaim struct {
	version string
	claim   Claim
}

// of returns the result of FromObject, computed once for each version of an object of the API server.
func (p *parsed) of(o *v1.BCSNetIPClaim) (Claim, error) {
	p.mu.Lock()
	known, ok := p.claims[o.UID]
	p.mu.Unlock()
	if ok && known.version == o.ResourceVersion {
		return known.claim, nil
	}
	c, err := FromObject(o)
	if err != nil || o.UID == "" || o.ResourceVersion == "" {
		return c, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.claims == nil || len(p.claims) >= maxParsed {
		p.claims = map[types.UID]parsedClaim{}
	}
	p.claims[o.UID] = parsedClaim{o.ResourceVersion, c}
	return c, nil
}

package workload

import (
	"context"
	"math"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
)

// Resolver finds the workload and the policy of pods.
type Resolver struct {
	Owners *Owners
	// Namespace is the controller's namespace, which contains the claims of shared pools.
	Namespace string
	// ClaimsFor returns the sorted names of the claims that somebody created for a workload, in its namespace.
	ClaimsFor func(context.Context, Workload) ([]string, error)
	// IPAMClaims reports whether ipam-claim-reference in the networks of a pod has an effect.
	IPAMClaims bool
	// ServesShared reports whether a shared pool's claim in the controller's namespace exists and serves the pods of a
	// namespace. Other namespaces have their own shared pool of that name. If nil, shared pools are for all namespaces.
	ServesShared func(ctx context.Context, claim, namespace string) (bool, error)
	// Index has the networks of pools and addresses. If nil, terms of the whole pod apply to every interface.
	Index *index.Index

	readings readings
}

// Resolve returns the policy of a pod for the requested interface (Pod.At). It reads from the API server only objects
// that the watches have not delivered, one read each. The error is an *ipam.Refusal if the annotations cannot be
// fulfilled; any other error means that the API server did not answer.
func (r *Resolver) Resolve(ctx context.Context, pod Pod) (Policy, error) {
	if r.IPAMClaims {
		switch ref, ok, refusal := pod.reference(); {
		case refusal != nil:
			return Policy{}, refusal
		case ok:
			return r.ofIPAMClaim(ctx, pod, ref)
		}
	}
	own, err := r.Owners.of(ctx, pod)
	if err != nil {
		return Policy{}, err
	}
	defaults, err := r.Owners.defaults(ctx, pod.Namespace)
	if err != nil {
		return Policy{}, err
	}
	var claims []string
	if own.Namespace != "" { // a claim is for a workload of its namespace
		if claims, err = r.ClaimsFor(ctx, own.Workload); err != nil {
			return Policy{}, err
		}
	}
	if len(claims) == 0 && pod.Annotations == nil && own.annotations == nil && defaults == nil {
		return Policy{Release: ReleaseWithPod, Workload: own.Workload}, nil
	}
	b := policyBuilder{pod: pod, readings: &r.readings}
	p, err := decide(b, own, claims, defaults, r.Namespace, r.Index)
	if err != nil || p.Shared == "" || p.Named {
		return p, err
	}
	return p, r.placeShared(ctx, pod, &p)
}

// placeShared decides in which namespace the claim of a shared pool is, and which namespaces it serves if it is
// created.
func (r *Resolver) placeShared(ctx context.Context, pod Pod, p *Policy) (err error) {
	p.ForAll = true
	if r.ServesShared == nil {
		return nil
	}
	name := SharedClaim(p.Shared)
	if p.ForAll, err = r.ServesShared(ctx, name, pod.Namespace); err != nil || p.ForAll {
		return err
	}
	p.Claim = pod.Namespace + "/" + name
	return nil
}

// decide makes a policy of the collected data.
func decide(
	b policyBuilder, own owned, claims []string, defaults map[string]string, system string, x *index.Index,
) (Policy, error) {
	refusal := b.readAll(own, defaults)
	if refusal == nil {
		refusal = b.addAll(0, podWideClaim)
	}
	if refusal == nil {
		refusal = b.readClaims(own, claims)
	}
	if refusal == nil {
		refusal = b.addAll(podWideClaim, math.MaxUint16)
	}
	if refusal != nil {
		return Policy{}, refusal
	}
	if refusal := b.bind(x); refusal != nil {
		return Policy{}, refusal
	}
	p, refusal := b.resolve(own, b.pod, system)
	if refusal != nil {
		return Policy{}, refusal
	}
	return p, nil
}

// podWideClaim is the rank of a claim that somebody created for the workload.
const podWideClaim = onClaim << (4 * ofInterface)

// readAll reads the annotations of the pod, its workload and its namespace.
func (b *policyBuilder) readAll(own owned, defaults map[string]string) *ipam.Refusal {
	for _, from := range []struct {
		level  Level
		object string
		values map[string]string
	}{
		{OnPod, podKind + " " + b.pod.Namespace + "/" + b.pod.Name, b.pod.Annotations},
		{OnWorkload, own.String(), own.annotations},
		{OnNamespace, namespaceKind + " " + b.pod.Namespace, defaults},
	} {
		for _, i := range ignored(from.level, from.object, from.values) {
			if !i.Known {
				b.ignored = append(b.ignored, i)
			}
		}
		b.others = append(b.others, b.pod.otherTerms(from.level, from.object, from.values)...)
		if refusal := b.read(from.level, from.object, from.values); refusal != nil {
			return refusal
		}
	}
	return nil
}

package workload

import (
	"net/netip"
	"strings"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// resolve combines the collected values into a policy, or returns a refusal.
func (b *policyBuilder) resolve(own owned, pod Pod, system string) (Policy, *ipam.Refusal) {
	if pod.Mirror {
		for _, f := range []Field{fieldClaim, fieldShared, fieldRelease, fieldKeep} {
			if b.isDefault(f) {
				b.drop(f)
			}
		}
	}
	if refusal := b.reconcile(); refusal != nil {
		return Policy{}, refusal
	}
	p := Policy{Workload: own.Workload, Pools: b.pools(), Shared: b.text(fieldShared), Families: b.families()}
	p.Identity = identity(b.text(fieldIdentity), own.Workload, own.nature, pod)
	if refusal := b.release(&p, own, pod); refusal != nil {
		return Policy{}, refusal
	}
	if refusal := b.addresses(&p, own); refusal != nil {
		return Policy{}, refusal
	}
	if refusal := b.claim(&p, own, pod, system); refusal != nil {
		return Policy{}, refusal
	}
	if pod.Mirror && (p.Claim != "" || p.Identity != "") && !failpoint.Broken("mirror") {
		return Policy{}, ipam.Refuse(ipam.ReasonInvalidAnnotation,
			"pod %s/%s is static: its kubelet has made it up, so nothing is kept for it, and it draws from no claim",
			pod.Namespace, pod.Name).WithHint("use a DaemonSet, or no annotation that keeps addresses")
	}
	p.Sources, p.Unbound, p.Ignored = b.sources, b.unbound, b.ignored
	return p, nil
}

// reconcile resolves dependencies between fields.
func (b *policyBuilder) reconcile() *ipam.Refusal {
	claim, shared := b.said[fieldClaim], b.said[fieldShared]
	switch {
	case claim == nil || shared == nil:
	case claim.rank() == shared.rank():
		return contradict(claim, shared, ": a pod draws from one claim")
	case claim.rank() > shared.rank():
		b.drop(fieldClaim)
	default:
		b.drop(fieldShared)
	}
	// A default claim is dropped if it conflicts with other settings.
	if b.isDefault(fieldClaim) && (b.said[fieldSets] != nil || b.said[fieldPool] != nil && !b.isDefault(fieldPool)) {
		b.drop(fieldClaim)
	}
	if b.isDefault(fieldPool) && b.said[fieldClaim] != nil { // the claim itself names its pools
		b.drop(fieldPool)
	}
	for _, f := range []Field{fieldRelease, fieldKeep} {
		if b.isDefault(f) && b.said[fieldClaim] != nil { // the claim has its own policy
			b.drop(f)
		}
	}
	if b.said[fieldShared] != nil { // a shared pool is never released, whatever other annotations say
		b.drop(fieldRelease)
		b.drop(fieldKeep)
	}
	release, keep := b.said[fieldRelease], b.said[fieldKeep]
	if release == nil || keep == nil || release.release == ReleaseTimed {
		return nil
	}
	switch {
	case !keep.implies, keep.rank() > release.rank():
		b.drop(fieldKeep)
	case keep.rank() < release.rank():
		b.drop(fieldRelease)
	default:
		return contradict(release, keep, ": a duration goes with the policy timed")
	}
	return nil
}

// release resolves the release policy.
func (b *policyBuilder) release(p *Policy, own owned, pod Pod) *ipam.Refusal {
	said, keep, sets := b.said[fieldRelease], b.said[fieldKeep], b.said[fieldSets]
	switch {
	case p.Shared != "":
		p.Release = ReleaseNever
		return nil
	case said != nil:
		p.Release = said.release
	case keep != nil && keep.implies:
		p.Release = ReleaseTimed
	case b.said[fieldClaim] != nil:
		p.Release = ReleaseUnsaid
	case sets != nil && sets.claims && (own.nature == app || own.nature == machine || own.nature == daemon):
		p.Release = ReleaseImmutable // the workload's own list is its own while it is there
		return nil
	default:
		p.Release = ReleaseWithPod
	}
	if why := unfit(p.Release, own, pod, b.text(fieldIdentity) != ""); why != "" {
		if b.isDefault(fieldRelease) {
			b.drop(fieldRelease)
			p.Release = ReleaseWithPod
			return nil
		}
		return ipam.Refuse(ipam.ReasonInvalidAnnotation, "%s: %s", said, why).WithHint("%s", unfitHint)
	}
	if p.Release == ReleaseTimed {
		p.Keep = defaultKeep
		if keep != nil {
			p.Keep = keep.keep
		}
	} else {
		b.drop(fieldKeep)
	}
	return nil
}

const unfitHint = "use a Deployment or StatefulSet, name a claim, say a primary key, or keep the address for a while " +
	"with the policy timed"

// unfit returns the reason why a workload cannot have a policy; empty if it can.
func unfit(r ReleasePolicy, own owned, pod Pod, primaryKey bool) string {
	scaled := own.nature == app || own.nature == machine
	switch {
	case r == ReleaseImmutable && !scaled:
		return own.String() +
			" has no replicas that could be scaled down, which is what would free an immutable address"
	case r == ReleaseNever && !scaled && !primaryKey && own.nature != bare:
		return "the names of the pods of " + own.String() + " are not stable, so nothing could get the address back"
	case r == ReleaseNever && own.Kind == podKind && !primaryKey && pod.Generated:
		return "the name of " + own.String() + " is generated, so nothing could get the address back"
	}
	return ""
}

// addresses resolves which addresses the pod may get, with their gateway and mask.
func (b *policyBuilder) addresses(p *Policy, own owned) *ipam.Refusal {
	sets, gateway := b.said[fieldSets], b.said[fieldGateway]
	if sets != nil {
		p.Sets, p.Mask, p.Lengths = sets.sets, sets.mask, sets.lengths
		if p.Release != ReleaseWithPod && p.Identity == "" && several(sets) {
			by, hint := "", "use a StatefulSet, or let the addresses go with the pod"
			if claim := b.said[fieldClaim]; claim != nil {
				by, hint = ", as "+claim.String()+" says", "use a StatefulSet, or no claim"
			}
			return ipam.Refuse(ipam.ReasonInvalidAnnotation,
				"%s: the pods of %s are interchangeable, so it cannot be known which of several addresses belong "+
					"together once they are kept%s", sets, own, by).
				WithHint("%s", hint)
		}
	}
	if gateway == nil {
		return nil
	}
	p.Gateway = gateway.gateway
	if sets == nil {
		return nil
	}
	for _, s := range p.Sets {
		for _, r := range s.Ranges() {
			switch {
			case r.From().Is4() != p.Gateway.Is4():
			case s.Contains(p.Gateway):
				return contradict(sets, gateway, ": the gateway is one of the pod's addresses")
			case p.Mask == 0 || ipaddr.Reaches(netip.PrefixFrom(r.From(), p.Mask), p.Gateway):
				return nil
			}
		}
	}
	return contradict(sets, gateway, ": the gateway is not in the subnet of the addresses")
}

// several reports whether a statement has more than one address of a family.
func several(s *statement) bool {
	var v4, v6 int
	for _, set := range s.sets {
		if set.Ranges()[0].From().Is4() {
			v4++
		} else {
			v6++
		}
	}
	return v4 > 1 || v6 > 1
}

// claim resolves which claim holds the addresses.
func (b *policyBuilder) claim(p *Policy, own owned, pod Pod, system string) *ipam.Refusal {
	sets := b.said[fieldSets]
	switch name := b.text(fieldClaim); {
	case name != "":
		p.Claim, p.Named, p.PodWideClaim = pod.Namespace+"/"+name, true, b.maybeElsewhere(fieldClaim) != nil
		if namespace, _, elsewhere := strings.Cut(name, "/"); elsewhere {
			if p.Claim = name; namespace != pod.Namespace && p.Identity != "" {
				p.Identity = pod.Namespace + "/" + p.Identity // it serves other namespaces, too
			}
		}
		return nil
	case p.Shared != "":
		p.Claim = system + "/" + SharedClaim(p.Shared)
		switch {
		case own.nature == app && p.Identity != "", own.nature == machine, b.said[fieldIdentity] != nil:
			p.Identity = pod.Namespace + "/" + p.Identity // the pool serves other namespaces, too
		default:
			p.Identity = "" // kept by the pool
		}
	case p.Release != ReleaseWithPod || sets != nil && sets.claims:
		text := own.Name
		if own.nature == bare && b.said[fieldIdentity] != nil {
			text = p.Identity // another pod may come back under it
		}
		if b.apart {
			text += "/" + pod.interfaceName()
		}
		p.Claim = pod.Namespace + "/" + claimName(own.prefix, text)
	}
	if p.Claim == "" && b.said[fieldIdentity] == nil {
		p.Identity = ""
	}
	if p.Claim != "" && own.unsure != nil {
		return own.unsure
	}
	if n := len(p.ClaimAddresses()); n > v1.MaxClaimAddresses {
		return ipam.Refuse(ipam.ReasonInvalidAnnotation,
			"%s: it comes to %d ranges, and a claim, which keeps the addresses, has %d at most", sets, n,
			v1.MaxClaimAddresses).
			WithHint("name fewer and larger ranges, or name a pool in their place")
	}
	return nil
}

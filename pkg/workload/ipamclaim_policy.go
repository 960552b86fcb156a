package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// RequestsField is the Key of a Source for the requested addresses of an IPAMClaim.
const RequestsField = "spec.ipRequests"

// ofIPAMClaim returns the policy of a pod for an interface with an IPAMClaim: the address belongs to the IPAMClaim and
// stays until that is deleted. Annotations about claims, policies and keys apply to the pod's other interfaces. Those
// about pool and gateway also apply here, and so do those about addresses if the IPAMClaim requests none.
func (r *Resolver) ofIPAMClaim(ctx context.Context, pod Pod, ref Reference) (Policy, error) {
	c, err := r.Owners.IPAMClaim(ctx, pod.Namespace, ref.Claim)
	if refusal := ref.absent(pod, err); refusal != nil {
		return Policy{}, refusal
	}
	if err != nil {
		return Policy{}, err
	}
	if refusal := ref.unfit(pod, c); refusal != nil {
		return Policy{}, refusal
	}
	own, err := r.Owners.of(ctx, pod)
	if err != nil {
		return Policy{}, err
	}
	defaults, err := r.Owners.defaults(ctx, pod.Namespace)
	if err != nil {
		return Policy{}, err
	}
	machine := ipamClaimNamed(pod.Namespace, ref.Claim)
	claims, err := r.ClaimsFor(ctx, machine)
	if err != nil {
		return Policy{}, err
	}
	b := policyBuilder{pod: pod, readings: &r.readings}
	p, refusal := decideIPAMClaim(b, c, ref, own, claims, defaults, r.Index)
	if refusal != nil {
		return Policy{}, refusal
	}
	return p, nil
}

// absent returns the refusal for a pod that names an IPAMClaim, if the error of reading it means that it does not
// exist; nil for any other error.
func (r Reference) absent(pod Pod, err error) *ipam.Refusal {
	switch {
	case errors.Is(err, ErrKindGone):
		return ipam.Refuse(ipam.ReasonClaimNotFound,
			"the API server serves no IPAMClaims, and %s of pod %s/%s names one", r,
			pod.Namespace, pod.Name).
			WithHint("install the CustomResourceDefinition ipamclaims.%s, or take the reference out of the pod's "+
				"networks", networksGroup)
	case errors.Is(err, ErrGone):
		return ipam.Refuse(ipam.ReasonClaimNotFound, "IPAMClaim %s/%s does not exist, and %s of pod %s/%s names it",
			pod.Namespace, r.Claim, r, pod.Namespace, pod.Name).
			WithHint("create it, or take the reference out of the pod's networks; it is looked for again with the " +
				"next request")
	}
	return nil
}

// unfit returns the refusal if an IPAMClaim is not for the interface of a pod that names it; nil if it is.
func (r Reference) unfit(pod Pod, c *IPAMClaim) *ipam.Refusal {
	switch {
	case c.Problem != "":
		return ipam.Refuse(ipam.ReasonClaimConflict, "IPAMClaim %s/%s cannot be followed: %s", c.Namespace, c.Name,
			c.Problem).
			WithHint("make another one: kubectl describe ipamclaim -n %s %s", c.Namespace, c.Name)
	case !r.First && c.Interface != "" && c.Interface != r.IfName:
		return ipam.Refuse(ipam.ReasonClaimConflict,
			"IPAMClaim %s/%s is for interface %s, and %s of pod %s/%s names it",
			c.Namespace, c.Name, clip(c.Interface), r, pod.Namespace, pod.Name).
			WithHint("name the interface in the element of the pod's networks, or name another IPAMClaim")
	}
	return nil
}

// decideIPAMClaim makes the policy. claims names the claims that somebody created for the IPAMClaim.
func decideIPAMClaim(
	b policyBuilder, c *IPAMClaim, ref Reference, own owned, claims []string, defaults map[string]string,
	x *index.Index,
) (Policy, *ipam.Refusal) {
	refusal := b.readAll(own, defaults)
	if refusal == nil {
		refusal = b.addAll(0, math.MaxUint16)
	}
	if refusal != nil {
		return Policy{}, refusal
	}
	for _, f := range []Field{fieldClaim, fieldShared, fieldRelease, fieldKeep, fieldIdentity} {
		b.drop(f)
	}
	self := owned{Workload: ipamClaimNamed(c.Namespace, c.Name), nature: attachment, prefix: ipamClaimPrefix}
	if len(c.Requests) > 0 {
		b.drop(fieldSets)
		if refusal := b.add(c.requested()); refusal != nil {
			return Policy{}, refusal
		}
	}
	if refusal := b.readClaims(self, claims); refusal != nil {
		return Policy{}, refusal
	}
	if b.isDefault(fieldPool) && b.said[fieldClaim] != nil {
		b.drop(fieldPool)
	}
	if refusal := b.bind(x); refusal != nil {
		return Policy{}, refusal
	}
	p := Policy{
		Workload: self.Workload, Identity: c.Name, Release: ReleaseImmutable, Pools: b.pools(),
		Unbound: b.unbound, Ignored: b.ignored,
		IfName: ref.IfName, Replicas: 1, Requests: c.Requests,
		Claim: c.Namespace + "/" + ClaimOfIPAMClaim(c.Name),
	}
	if name := b.text(fieldClaim); name != "" {
		p.Claim, p.Named, p.Release = c.Namespace+"/"+name, true, ReleaseUnsaid
	}
	if refusal := b.addresses(&p, self); refusal != nil {
		return Policy{}, refusal
	}
	b.sources = append(b.sources, Source{
		Object: podKind + " " + b.pod.Namespace + "/" + b.pod.Name, Key: ReferenceField, Gave: fieldClaim.String(),
		Value: ref.Claim + " of interface " + ref.IfName,
	})
	p.Sources = b.sources
	return p, nil
}

// requested returns the requested addresses of an IPAMClaim as a statement, as if an annotation had requested them.
func (c *IPAMClaim) requested() *statement {
	var sets []*netipx.IPSet
	var texts []string
	for _, p := range c.Requests {
		sets = append(sets, ipaddr.SetOf(netipx.IPRangeFrom(p.Addr(), p.Addr())))
		texts = append(texts, p.String())
	}
	return &statement{
		parsedValue: parsedValue{sets: sets}, key: RequestsField, value: strings.Join(texts, ","),
		object: fmt.Sprintf("%s %s/%s", ipamClaimKind, c.Namespace, c.Name), level: onClaim,
		field: fieldSets, binds: ofInterface,
	}
}

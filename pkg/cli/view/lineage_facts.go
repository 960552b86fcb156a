package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Facts describes a lineage step by step.
func (t *Lineage) Facts(s *app.App) (f Facts) {
	t.podFacts(s, &f)
	f.wrong(s, t.wrong)
	t.ignoredFacts(&f)
	for i, l := range t.Leases {
		if i == 0 || l.Claim != t.Leases[i-1].Claim {
			t.claimFact(&f, l.Claim)
		}
		addressFact(&f, l)
		f.add("Pool", "%s", t.poolText(l.Pool))
	}
	if len(t.Leases) == 0 {
		t.claimFact(&f, t.policy.Claim)
		f.add("Address", "none; why: %s", s.Called("bcsnetctl explain "+t.key.String()))
	}
	return f
}

// wrong adds the error if annotations and claims give no policy.
func (f *Facts) wrong(s *app.App, wrong error) {
	if wrong == nil {
		return
	}
	text, hint := s.Texts(wrong)
	f.add("", "%s", text)
	if hint != "" {
		f.add("", "hint: %s", s.Called(hint))
	}
}

// podFacts adds the pod, its workload, and the policies of its interfaces with their sources.
func (t *Lineage) podFacts(s *app.App, f *Facts) {
	switch {
	case t.key.Name == "":
		return
	case t.pod == nil:
		text := ", which is gone"
		if slices.ContainsFunc(t.Leases, func(l lease.Lease) bool {
			return resource.OfPod(l) &&
				workload.Static(l.PodUID)
		}) {
			text += " from the API server; it is static, and may run all the same"
		}
		f.add("Pod", "%s%s", t.key, text)
		return
	}
	f.add("Pod", "%s, %s", t.key, t.podState())
	for _, i := range t.interfaces {
		i.facts(s, f, t)
	}
	for _, l := range t.Leases {
		if p := t.policy; p.Workload.IsIPAMClaim() && l.State == lease.Active && l.IfName == p.IfName && l.Claim == "" {
			f.add("", "%s is not kept for it yet: that takes the controller's flag --ipam-claims, and half a minute",
				l.Addr)
		}
	}
}

// ignoredFacts adds the annotations that have no effect but look as if they had.
func (t *Lineage) ignoredFacts(f *Facts) {
	for _, i := range t.ignored {
		f.add("Ignored", "%s", i.String())
	}
}

// podState returns the phase and the node of a pod.
func (t *Lineage) podState() string {
	text := cmp.Or(t.phase, "Pending")
	if t.pod.Deleting {
		text += " and being deleted"
	}
	switch {
	case t.pod.Node == "":
		return text + ", on no node yet"
	case len(t.pod.HostIPs) > 0:
		return text + ", on node " + t.pod.Node + " (" + t.pod.HostIPs[0].String() + ")"
	}
	return text + ", on node " + t.pod.Node
}

// policyText describes the policy: the claim's if that exists, else the annotations'.
func (t *Lineage) policyText(p workload.Policy) string {
	if c := t.claims[p.Claim]; c != nil {
		return resource.ClaimPolicyText(c)
	}
	if p.Release == workload.ReleaseUnsaid {
		return "the policy of claim " + p.Claim + ", which does not exist"
	}
	if p.Workload.IsIPAMClaim() {
		return resource.UntilIPAMClaimGone
	}
	text := resource.PolicyText(v1.ReleasePolicy(p.Release), &metav1.Duration{Duration: p.Keep}, true)
	if len(p.Sources) == 0 {
		text += "; no annotation says otherwise"
	}
	return text
}

// gives names the part of a policy that an annotation decided.
func gives(from workload.Source) string {
	return map[string]string{
		"Sets": "which addresses", "Pool": "which pool", "Claim": "which claim", "Shared": "which shared pool",
		"Release": "the policy",
		"Keep":    "how long", "Identity": "for whom", "Gateway": "the gateway",
		"FamilyPolicy": "how many families", "Families": "which families",
	}[from.Gave]
}

// policyParts lists the parts of a policy except the release policy.
func policyParts(p workload.Policy) (out []string) {
	for _, set := range p.Sets {
		out = append(out, "one address of "+ipaddr.FormatSet(set))
	}
	if len(p.Pools) > 0 {
		out = append(out, "from pool "+strings.Join(p.Pools, ", else from pool "))
	}
	if p.Gateway.IsValid() {
		out = append(out, "with gateway "+p.Gateway.String())
	}
	if p.Identity != "" && p.Claim != "" {
		out = append(out, "kept for "+p.Identity)
	}
	if p.IfName != "" {
		out = append(out, "only for interface "+p.IfName)
	}
	return out
}

// names reports whether an annotation names the claim, so that the controller does not make it.
func (t *Lineage) names(claim string) bool {
	return slices.ContainsFunc(t.interfaces, func(i *interfaceTerms) bool {
		return i.policy.Named && i.policy.Claim == claim
	})
}

func (t *Lineage) claimFact(f *Facts, name string) {
	if name == "" {
		return
	}
	c := t.claims[name]
	if c == nil {
		text := name + ", which does not exist"
		if !t.names(name) {
			text += "; the controller makes it with the first address"
		}
		f.add("Claim", "%s", text)
		return
	}
	text := name + ", of " + resource.OwnerText(c)
	switch {
	case c.Labels[claim.Managed] != "true":
	case resource.IPAMClaimOf(c) != "":
		text += ", made for it"
	default:
		text += ", made from annotations"
	}
	if usage := c.Status.Usage; usage != "" {
		text += ", " + usage + " addresses in use"
	}
	f.add("Claim", "%s", text)
	if t.pod == nil {
		f.add("Policy", "%s", resource.ClaimPolicyText(c))
	}
}

func addressFact(f *Facts, l lease.Lease) {
	parts := []string{fmt.Sprintf("%s/%d", l.Addr, l.Bits), resource.StatusText(l)}
	if l.Owner != "" {
		parts = append(parts, "held by "+l.Owner+", which is not a pod")
	}
	if l.IfName != "" {
		parts = append(parts, "interface "+l.IfName)
	}
	if l.PodPrimaryKey != "" {
		parts = append(parts, "for "+l.PodPrimaryKey)
	}
	if !l.Updated.IsZero() {
		parts = append(parts, "since "+resource.TimeText(l.Updated))
	}
	if also := resource.MigrationText(l); also != "" {
		parts = append(parts, also)
	}
	if l.ExpiredTime != "" {
		parts = append(parts, "until "+resource.UntilText(l.ExpiredTime))
	}
	f.add("Address", "%s", strings.Join(parts, ", "))
}

func (t *Lineage) poolText(name string) string {
	p := t.pools[name]
	if p == nil {
		return cmp.Or(name, "none") + ", which does not exist"
	}
	return name + ", " + resource.CidrOf(p) + ", " + resource.GatewayText(p.Spec.Gateway)
}

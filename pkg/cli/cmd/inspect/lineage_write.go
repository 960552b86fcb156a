package inspect

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// writeLineage prints a lineage, one step a line.
func writeLineage(s *app.App, t *lineage) error {
	var b bytes.Buffer
	podLines(s, &b, t)
	wrongLines(s, &b, t.wrong)
	t.ignoredLines(&b)
	for i, l := range t.leases {
		if i == 0 || l.Claim != t.leases[i-1].Claim {
			claimLine(&b, t, l.Claim)
		}
		addressLine(&b, l)
		labelled(&b, "Pool", "%s", t.poolText(l.Pool))
	}
	if len(t.leases) == 0 {
		claimLine(&b, t, t.policy.Claim)
		labelled(&b, "Address", "none; why: %s", s.Called("bcsnetctl explain "+t.key.String()))
	}
	_, err := s.Out.Write(b.Bytes())
	return err
}

// wrongLines prints why annotations and claims come to no policy.
func wrongLines(s *app.App, b *bytes.Buffer, wrong error) {
	if wrong == nil {
		return
	}
	text, hint := s.Texts(wrong)
	labelled(b, "", "%s", text)
	if hint != "" {
		labelled(b, "", "hint: %s", s.Called(hint))
	}
}

// labelled writes a line with a label; without a label it goes on about the line before.
func labelled(b *bytes.Buffer, label, format string, args ...any) {
	if label != "" {
		label += ":"
	}
	printer.Line(b, 12, label, fmt.Sprintf(format, args...))
}

// podLines prints the pod, its workload, and the policies of its interfaces with their sources.
func podLines(s *app.App, b *bytes.Buffer, t *lineage) {
	switch {
	case t.key.Name == "":
		return
	case t.pod == nil:
		text := ", which is gone"
		if slices.ContainsFunc(t.leases, func(l lease.Lease) bool { return resource.OfPod(l) && workload.Static(l.PodUID) }) {
			text += " from the API server; it is static, and may run all the same"
		}
		labelled(b, "Pod", "%s%s", t.key, text)
		return
	}
	labelled(b, "Pod", "%s, %s", t.key, t.podState())
	for _, i := range t.interfaces {
		i.write(s, b, t)
	}
	for _, l := range t.leases {
		if p := t.policy; p.Workload.IsIPAMClaim() && l.State == lease.Active && l.IfName == p.IfName && l.Claim == "" {
			labelled(b, "", "%s is not kept for it yet: that takes the controller's flag --ipam-claims, and half a minute",
				l.Addr)
		}
	}
}

// ignoredLines prints the annotations that have no effect although they look as if they had.
func (t *lineage) ignoredLines(b *bytes.Buffer) {
	for _, i := range t.ignored {
		labelled(b, "Ignored", "%s", i.String())
	}
}

// podState returns the phase of a pod and the node that it is on.
func (t *lineage) podState() string {
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

// policyText returns the policy in words: that of the claim where it exists, else that of the annotations.
func (t *lineage) policyText(p workload.Policy) string {
	if c := t.claims[p.Claim]; c != nil {
		return resource.ClaimPolicyText(c)
	}
	if p.Release == workload.ReleaseUnsaid {
		return "that of claim " + p.Claim + ", which does not exist"
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

// policyParts lists the parts of a policy other than when addresses are released.
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
		out = append(out, "for interface "+p.IfName+" alone")
	}
	return out
}

// names reports whether a claim was named, so that nobody makes it.
func (t *lineage) names(claim string) bool {
	return slices.ContainsFunc(t.interfaces, func(i *interfaceTerms) bool {
		return i.policy.Named && i.policy.Claim == claim
	})
}

func claimLine(b *bytes.Buffer, t *lineage, name string) {
	if name == "" {
		return
	}
	c := t.claims[name]
	if c == nil {
		text := name + ", which does not exist"
		if !t.names(name) {
			text += "; the controller makes it with the first address"
		}
		labelled(b, "Claim", "%s", text)
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
	labelled(b, "Claim", "%s", text)
	if t.pod == nil {
		labelled(b, "Policy", "%s", resource.ClaimPolicyText(c))
	}
}

func addressLine(b *bytes.Buffer, l lease.Lease) {
	parts := []string{fmt.Sprintf("%s/%d", l.Addr, l.Bits), resource.StatusText(l)}
	if l.Owner != "" {
		parts = append(parts, "held by "+l.Owner+", which is no pod")
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
	labelled(b, "Address", "%s", strings.Join(parts, ", "))
}

func (t *lineage) poolText(name string) string {
	p := t.pools[name]
	if p == nil {
		return cmp.Or(name, "none") + ", which does not exist"
	}
	return name + ", " + resource.CidrOf(p) + ", " + resource.GatewayText(p.Spec.Gateway)
}

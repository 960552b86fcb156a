package view

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Facts describes a claim.
func (d *Claim) Facts(s *app.App) (f Facts) {
	c := d.Claim
	f.add("Claim", "%s", c.Name)
	f.add("Namespace", "%s", c.Namespace)
	if o := c.Spec.Owner; o != nil {
		f.add("Owner", "%s %s (%s)", o.Kind, o.Name, o.APIVersion)
	} else {
		f.add("Used by", "%s", resource.OwnerText(c.BCSNetIPClaim))
	}
	if len(c.Spec.Namespaces) > 0 {
		f.add("Open to", "%s", namespacesText(c.Spec.Namespaces))
	}
	switch {
	case c.Labels[claim.Managed] != "true":
	case resource.IPAMClaimOf(c.BCSNetIPClaim) != "":
		f.add("Made from", "the IPAMClaim, which pods name in their networks and which determines its spec")
	default:
		f.add("Made from", "annotations, which determine its spec")
	}
	f.add("Policy", "%s", resource.ClaimPolicyText(c.BCSNetIPClaim))
	f.add("Size", "%s", resource.SizeText(c.BCSNetIPClaim))
	if c.Spec.Pool != "" {
		f.add("Pool", "%s", c.Spec.Pool)
	}
	if len(c.Spec.Addresses) > 0 {
		f.add("Only", "%s", strings.Join(c.Spec.Addresses, ", "))
	}
	switch used, kept := ClaimUses(d.Leases); {
	case d.Blind:
		f.add("In use", "%s", c.Status.Usage)
	case used+kept > 0:
		f.add("In use", "%d of %s, %d kept", used, humanize.Plural(used+kept, "address"), kept)
	default:
		f.add("In use", "it has no address yet")
	}
	word, attention := resource.ClaimState(c.BCSNetIPClaim)
	hue := terminal.Green
	if attention {
		hue = terminal.Yellow
	}
	f.paint(word, hue)
	f.add("Age", "%s", s.Age(c.CreationTimestamp.Time))
	return f
}

// namespacesText names the other namespaces whose pods may use a claim.
func namespacesText(names []string) string {
	if slices.Contains(names, claim.AllNamespaces) {
		return "pods of all namespaces"
	}
	return "pods of " + app.Those("namespace", names)
}

// Next returns commands that change the state of the claim.
func (d *Claim) Next() (n Steps) {
	c := d.Claim
	used, kept := ClaimUses(d.Leases)
	word, _ := resource.ClaimState(c.BCSNetIPClaim)
	switch word {
	case resource.StateUnseen, resource.StateUpdating:
		n.hint(resource.HintController)
	case v1.ReasonInvalidSpec:
		n.add("correct the spec", fmt.Sprintf("kubectl edit bcsnetipclaim -n %s %s", c.Namespace, c.Name))
	case v1.ReasonClaimReleasing:
		if used > 0 {
			n.add("see the pods that it waits for", "bcsnetctl lease list --claim "+c.FullName())
		}
	}
	if kept > 0 {
		n.add("release the addresses that no pod has", "bcsnetctl claim release "+c.FullName())
	}
	if !d.Blind && used+kept == 0 && c.DeletionTimestamp == nil && c.Spec.SharedName == "" && c.Spec.Owner == nil {
		n.add("have pods use it: annotation "+workload.ClaimAnnotation+": "+c.Name, "")
	}
	return n
}

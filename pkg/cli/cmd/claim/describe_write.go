package claim

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// write prints the sections that have something to say.
func (d *description) write() error {
	var b bytes.Buffer
	d.head(&b)
	printer.Section(&b, "Conditions", resource.ConditionLines(d.App, d.claim.Status.Conditions))
	if err := printer.Indented(&b, "Addresses", printer.Table[lease.Lease]{Headers: true, Columns: d.columns()},
		d.leases); err != nil {
		return err
	}
	printer.Section(&b, "Events", resource.EventLines(d.App, d.events))
	printer.Section(&b, "Next", d.next())
	_, err := d.Out.Write(b.Bytes())
	return err
}

func (d *description) head(b *bytes.Buffer) {
	c := d.claim
	line := func(label, format string, args ...any) {
		printer.Line(b, 12, label+":", fmt.Sprintf(format, args...))
	}
	line("Claim", "%s", c.Name)
	line("Namespace", "%s", c.Namespace)
	if o := c.Spec.Owner; o != nil {
		line("Owner", "%s %s (%s)", o.Kind, o.Name, o.APIVersion)
	} else {
		line("Used by", "%s", resource.OwnerText(c.BCSNetIPClaim))
	}
	if len(c.Spec.Namespaces) > 0 {
		line("Open to", "%s", namespacesText(c.Spec.Namespaces))
	}
	switch {
	case c.Labels[claim.Managed] != "true":
	case resource.IPAMClaimOf(c.BCSNetIPClaim) != "":
		line("Made from", "the IPAMClaim, which pods name in their networks, and kept as it says")
	default:
		line("Made from", "annotations, and kept as they say")
	}
	line("Policy", "%s", resource.ClaimPolicyText(c.BCSNetIPClaim))
	line("Size", "%s", resource.SizeText(c.BCSNetIPClaim))
	if c.Spec.Pool != "" {
		line("Pool", "%s", c.Spec.Pool)
	}
	if len(c.Spec.Addresses) > 0 {
		line("Only", "%s", strings.Join(c.Spec.Addresses, ", "))
	}
	if used, kept := uses(d.leases); used+kept > 0 {
		line("In use", "%d of %s, %d kept", used, humanize.Plural(used+kept, "address"), kept)
	} else {
		line("In use", "it has no address yet")
	}
	word, attention := resource.ClaimState(c.BCSNetIPClaim)
	hue := terminal.Green
	if attention {
		hue = terminal.Yellow
	}
	fmt.Fprintf(b, "%-12s %s\n", "State:", d.Terminal.Paint(hue, word))
	line("Age", "%s", d.Age(c.CreationTimestamp.Time))
}

// namespacesText puts into words whose pods may use a claim beside those of its own namespace.
func namespacesText(names []string) string {
	if slices.Contains(names, claim.AllNamespaces) {
		return "pods of all namespaces"
	}
	return "pods of " + app.Those("namespace", names)
}

func (d *description) columns() []printer.Column[lease.Lease] {
	return []printer.Column[lease.Lease]{
		{Name: "ADDRESS", Cell: func(l lease.Lease) string { return l.Addr.String() }},
		{Name: "POOL", Cell: func(l lease.Lease) string { return l.Pool }},
		{Name: "STATUS", Cell: resource.StatusText},
		{Name: "POD", Cell: resource.PodText},
		{Name: "HOST", Cell: func(l lease.Lease) string { return resource.AddrText(l.Host) }},
		{Name: "FOR", Cell: func(l lease.Lease) string { return l.PodPrimaryKey }},
		{Name: "UNTIL", Cell: func(l lease.Lease) string { return resource.UntilText(l.ExpiredTime) }},
		{Name: "AGE", Cell: func(l lease.Lease) string { return d.Age(l.Updated) }},
	}
}

// next names the commands that change what is.
func (d *description) next() (lines []string) {
	c := d.claim
	add := func(what, command string) { lines = append(lines, "  "+what+": "+d.Called(command)) }
	used, kept := uses(d.leases)
	word, _ := resource.ClaimState(c.BCSNetIPClaim)
	switch word {
	case resource.StateUnseen, resource.StateUpdating:
		lines = append(lines, "  "+resource.HintController)
	case v1.ReasonInvalidSpec:
		add("mend the spec", fmt.Sprintf("kubectl edit bcsnetipclaim -n %s %s", c.Namespace, c.Name))
	case v1.ReasonClaimReleasing:
		if used > 0 {
			add("see the pods that it waits for", "bcsnetctl lease list --claim "+c.FullName())
		}
	}
	if kept > 0 {
		add("give back what no pod has", "bcsnetctl claim release "+c.FullName())
	}
	if used+kept == 0 && c.DeletionTimestamp == nil && c.Spec.SharedName == "" && c.Spec.Owner == nil {
		lines = append(lines, "  have pods use it: annotation "+workload.ClaimAnnotation+": "+c.Name)
	}
	return lines
}

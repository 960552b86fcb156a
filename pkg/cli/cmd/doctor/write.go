package doctor

import (
	"bufio"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// maxFindings bounds the printed findings of one check without --all.
const maxFindings = 10

// print prints findings: a paragraph for each check, or objects.
func (v *verb) print(s *doctor.Snapshot, r doctor.Report, found []doctor.Finding) error {
	if v.output.Printer != nil && !v.output.Names() {
		return v.output.Object(v.Out, v.findingObjects(s, r, found))
	}
	b := bufio.NewWriter(v.Out)
	if v.output.Names() {
		seen := map[doctor.Object]bool{}
		for _, f := range found {
			if !seen[f.Object] {
				fmt.Fprintln(b, f.Object)
			}
			seen[f.Object] = true
		}
		return b.Flush()
	}
	titles := map[string]string{}
	for _, c := range r.Ran {
		titles[c.ID] = c.Title
	}
	for len(found) > 0 {
		n := 1
		for n < len(found) && found[n].Check == found[0].Check {
			n++
		}
		v.paragraph(b, titles[found[0].Check], found[:n])
		found = found[n:]
	}
	return b.Flush()
}

// paragraph prints the findings of one check. If one command fixes all of them, it is printed once.
func (v *verb) paragraph(b *bufio.Writer, title string, found []doctor.Finding) {
	fmt.Fprintf(b, "%s %s: %s\n", v.mark(found[0].Severity), found[0].Check, title)
	common := true
	for _, f := range found {
		common = common && f.Fix == found[0].Fix
	}
	shown := found
	if !v.all && len(shown) > maxFindings {
		shown = shown[:maxFindings]
	}
	for _, f := range shown {
		fmt.Fprintf(b, "    %s: %s\n", f.Object, terminal.Visible(f.Cause))
		if !common {
			fmt.Fprintf(b, "        fix: %s\n", v.Called(f.Fix))
		}
	}
	if more := len(found) - len(shown); more > 0 {
		fmt.Fprintf(b, "    and %d more: --all shows them\n", more)
	}
	fmt.Fprintf(b, "    impact: %s\n", found[0].Impact)
	if common {
		fmt.Fprintf(b, "    fix: %s\n", v.Called(found[0].Fix))
	}
	fmt.Fprintln(b)
}

// mark returns the sign of a severity.
func (v *verb) mark(s doctor.Severity) string {
	switch s {
	case doctor.Error:
		if !v.Terminal.Utf8 {
			return v.Terminal.Paint(terminal.Red, "x")
		}
		return v.Terminal.Paint(terminal.Red, "✗")
	case doctor.Warning:
		return v.Terminal.Paint(terminal.Yellow, "!")
	default:
		return v.Terminal.Paint(terminal.Cyan, "i")
	}
}

// looked counts the checks that ran and the objects that they read.
func (v *verb) looked(s *doctor.Snapshot, r doctor.Report) string {
	var over []string
	for _, part := range doctor.Reads(r.Ran) {
		if s.Missing[part] != nil {
			continue
		}
		switch part {
		case doctor.PartPools:
			over = append(over, humanize.Plural(len(s.Pools), "pool"))
		case doctor.PartAddresses:
			held := 0
			for _, l := range s.Leases {
				if l.State != lease.Available {
					held++
				}
			}
			over = append(over, humanize.Plural(held, "held address"))
		case doctor.PartClaims:
			over = append(over, humanize.Plural(len(s.Claims), "claim"))
		case doctor.PartPods:
			over = append(over, humanize.Plural(len(s.Pods), "pod"))
		case doctor.PartNodes:
			over = append(over, humanize.Plural(len(s.Nodes), "node"))
		case doctor.PartCRDs, doctor.PartController, doctor.PartServices, doctor.PartPlain, doctor.PartOwners:
		}
	}
	text := humanize.Plural(len(r.Ran), "check")
	if len(over) > 0 {
		text += " over " + strings.Join(over, ", ")
	}
	return text
}

// findingObjects returns the list for -o json and similar formats.
func (v *verb) findingObjects(
	s *doctor.Snapshot, r doctor.Report, found []doctor.Finding,
) *unstructured.UnstructuredList {
	nodes := hosts.NewTable(s.Nodes...)
	counts, summary := countSeverities(found), map[string]any{
		"checks": int64(len(r.Ran)), "skipped": int64(notRun(r)),
	}
	for _, severity := range doctor.Severities() {
		summary[string(severity)] = int64(counts[severity])
	}
	skipped := []any{}
	for _, part := range doctor.Reads(v.checks) {
		if ids := r.Skipped[part]; len(ids) > 0 {
			skipped = append(skipped, map[string]any{
				"part": string(part), "why": s.Missing[part].Error(), "checks": resource.Values(ids),
			})
		}
	}
	l := printer.NewViews("Finding", found, func(f doctor.Finding) map[string]any {
		return map[string]any{
			"check": f.Check, "group": string(f.Group), "severity": string(f.Severity), "object": f.Object.String(),
			"pools": resource.Values(f.Pools),
			"cause": f.Cause, "impact": f.Impact, "fix": v.Called(f.Fix), "fixable": f.Release != nil &&
				s.Missing[doctor.PartNodes] == nil && f.Doubt(nodes.At(f.Release.Host)) == "",
		}
	})
	l.Object["summary"], l.Object["skipped"] = summary, skipped
	return l
}

func (v *verb) listChecks() error {
	switch {
	case v.output.Names():
		for _, c := range v.checks {
			if _, err := fmt.Fprintln(v.Out, c.ID); err != nil {
				return err
			}
		}
		return nil
	case v.output.Printer != nil:
		return v.output.Object(v.Out, printer.NewViews("Check", v.checks, func(c doctor.Check) map[string]any {
			return map[string]any{
				"id": c.ID, "group": string(c.Group), "severity": string(c.Severity), "title": c.Title,
				"meaning": c.Meaning, "impact": c.Impact, "remedy": v.Called(c.Remedy),
			}
		}))
	}
	return printer.NewTable(&v.output, []printer.Column[doctor.Check]{
		{Name: "ID", Cell: func(c doctor.Check) string { return c.ID }},
		{Name: "GROUP", Cell: func(c doctor.Check) string { return string(c.Group) }},
		{Name: "SEVERITY", Cell: func(c doctor.Check) string { return string(c.Severity) }},
		{Name: "FINDS", Cell: func(c doctor.Check) string { return c.Title }},
	}).Write(v.Out, v.checks)
}

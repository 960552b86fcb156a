package inspect

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// write prints a title, a section for each pool and, if there are several, one for all.
func (v *inspection) write(found *view.Inspection, views []view.Ranges) error {
	var b bytes.Buffer
	found.Head.Write(&b, v.App, 10)
	var total [5]uint64
	for i, one := range views {
		if i > 0 || len(found.Head) > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s:\n", terminal.Visible(title(one)))
		var rows []view.Part
		for i, p := range one.Parts() {
			n := ipaddr.SizeOfSet(p.Set)
			total[i] = ipaddr.AddSaturated(total[i], n)
			if n > 0 || p.Always {
				rows = append(rows, p)
			}
		}
		if err := v.table(&b, rows); err != nil {
			return err
		}
	}
	if len(views) > 1 {
		fmt.Fprintf(&b, "\nTogether:\n")
		for i, p := range views[0].Parts() {
			if total[i] > 0 || p.Always {
				fmt.Fprintf(&b, "  %-9s  %s\n", p.State, countText(total[i]))
			}
		}
	}
	_, err := v.Out.Write(b.Bytes())
	return err
}

// title names a pool and its subnet, and says why it allocates nothing if that is so.
func title(o view.Ranges) string {
	text := fmt.Sprintf("Pool %s (%s, %s)", o.Pool.Name, resource.CidrOf(o.Pool.BCSNetPool),
		resource.GatewayText(o.Pool.Spec.Gateway))
	if o.Beside {
		return text + ", from which it no longer draws"
	}
	if o.Gives {
		text += ", which gives it blocks"
	}
	if o.Stopped != "" {
		text += ", which allocates nothing: " + o.Stopped
	}
	return text
}

func (v *inspection) table(b *bytes.Buffer, rows []view.Part) error {
	var text bytes.Buffer
	err := printer.Table[view.Part]{Columns: []printer.Column[view.Part]{
		{Name: "STATE", Cell: func(p view.Part) string { return p.State }, Least: len("allocated")},
		{Name: "ADDRESSES", Cell: func(p view.Part) string { return countText(ipaddr.SizeOfSet(p.Set)) }},
		{Name: "RANGES", Cell: v.spell},
	}}.Write(&text, rows)
	for line := range bytes.Lines(text.Bytes()) {
		fmt.Fprintf(b, "  %s", line)
	}
	return err
}

// maxRanges bounds the ranges of one state on a line.
const maxRanges = 12

// spell returns the ranges of a state, or the first ones of many.
func (v *inspection) spell(p view.Part) string {
	all := p.Set.Ranges()
	more := len(all) - maxRanges
	if more <= 0 || v.wide() {
		return cmp.Or(ipaddr.FormatSet(p.Set), "none")
	}
	return ipaddr.FormatSet(ipaddr.SetOf(all[:maxRanges]...)) + " and " +
		humanize.Plural(more, "more range") + " (-o wide)"
}

func (v *inspection) wide() bool { return *v.output.Flags.OutputFormat == formatWide }

func countText(n uint64) string { return app.Count(app.Saturated(n)) }

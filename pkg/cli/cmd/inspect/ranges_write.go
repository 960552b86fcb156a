package inspect

import (
	"bytes"
	"cmp"
	"fmt"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// part is the addresses of one state.
type part struct {
	state string
	set   *netipx.IPSet
	// always: also shown where there is none.
	always bool
}

// parts returns the addresses of a pool by state, in the order in which they are shown.
func (o view) parts() []part {
	return []part{
		{"allocated", o.Active, true}, {"free", o.Free, !o.beside && !o.gives}, {"reserved", o.Reserved, true},
		{"cooling", o.Cooling, !o.beside && !o.gives}, {"others", o.Others, false},
	}
}

// write prints what was inspected, then a section for each pool, and one for all where there are several.
func (v *inspection) write(views []view) error {
	var b bytes.Buffer
	for _, line := range v.head {
		printer.Line(&b, 10, line.label+":", line.text)
	}
	var total [5]uint64
	for i, one := range views {
		if i > 0 || len(v.head) > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s:\n", terminal.Visible(v.title(one)))
		var rows []part
		for i, p := range one.parts() {
			n := ipaddr.SizeOfSet(p.set)
			total[i] = ipaddr.AddSaturated(total[i], n)
			if n > 0 || p.always {
				rows = append(rows, p)
			}
		}
		if err := v.table(&b, rows); err != nil {
			return err
		}
	}
	if len(views) > 1 {
		fmt.Fprintf(&b, "\nTogether:\n")
		for i, p := range views[0].parts() {
			if total[i] > 0 || p.always {
				fmt.Fprintf(&b, "  %-9s  %s\n", p.state, countText(total[i]))
			}
		}
	}
	_, err := v.Out.Write(b.Bytes())
	return err
}

// title names a pool and its subnet, and says why it hands out nothing where that is so.
func (v *inspection) title(o view) string {
	text := fmt.Sprintf("Pool %s (%s, %s)", o.pool.Name, resource.CidrOf(o.pool.BCSNetPool),
		resource.GatewayText(o.pool.Spec.Gateway))
	if o.beside {
		return text + ", which it draws from no more"
	}
	if o.gives {
		text += ", which gives it blocks"
	}
	if why := v.stopped(o.pool.Name); why != "" {
		text += ", which hands out nothing: " + why
	}
	return text
}

// stopped says why a pool hands out nothing; empty where it does.
func (v *inspection) stopped(name string) string {
	switch p, _ := v.index.Pools.Get(name); {
	case !p.Valid():
		return "its spec cannot be used: " + p.Problem
	case p.Terminating:
		return "it is being deleted"
	case p.Cordoned:
		return "it is cordoned"
	default:
		return v.index.Pools.Rebuilding(name)
	}
}

func (v *inspection) table(b *bytes.Buffer, rows []part) error {
	var text bytes.Buffer
	err := printer.Table[part]{Columns: []printer.Column[part]{
		{Name: "STATE", Cell: func(p part) string { return p.state }, Least: len("allocated")},
		{Name: "ADDRESSES", Cell: func(p part) string { return countText(ipaddr.SizeOfSet(p.set)) }},
		{Name: "RANGES", Cell: v.spell},
	}}.Write(&text, rows)
	for line := range bytes.Lines(text.Bytes()) {
		fmt.Fprintf(b, "  %s", line)
	}
	return err
}

// maxRanges bounds how many ranges of one state a line shows.
const maxRanges = 12

// spell writes the ranges of a state, the first few of many.
func (v *inspection) spell(p part) string {
	all := p.set.Ranges()
	more := len(all) - maxRanges
	if more <= 0 || v.wide() {
		return cmp.Or(ipaddr.FormatSet(p.set), "none")
	}
	return ipaddr.FormatSet(ipaddr.SetOf(all[:maxRanges]...)) + " and " + humanize.Plural(more, "more range")
}

func (v *inspection) wide() bool { return *v.output.Flags.OutputFormat == formatWide }

func countText(n uint64) string { return app.Count(saturated(n)) }

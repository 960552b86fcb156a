package usage

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// Measures of the picture, in pixels.
const (
	svgCell   = 11 // a cell and the gap behind it
	svgMargin = 16
	svgChar   = 7.2 // of the font at 12 pixels
	svgHead   = 64
	svgFoot   = 40
)

// svgStyle lets the picture follow the colours of the page that shows it.
const svgStyle = `<style>
svg{background:#ffffff}
text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328}
.title{font-size:16px;font-weight:bold}
.free{fill:#d8dee4}.cooling{fill:#79c0ff}.reserved{fill:#d4a72c}.active{fill:#1a7f37}.problem{fill:#cf222e}
.s1{fill:#c3e6cb}.s2{fill:#8fd19e}.s3{fill:#57b86c}.s4{fill:#2da44e}
path{stroke:#1f2328;stroke-width:1.5}.problem+path{stroke:#ffffff}
@media(prefers-color-scheme:dark){
svg{background:#0d1117}
text{fill:#e6edf3}
.free{fill:#30363d}.cooling{fill:#1f6feb}.reserved{fill:#d29922}.active{fill:#3fb950}.problem{fill:#f85149}
.s1{fill:#1b4426}.s2{fill:#22612f}.s3{fill:#2a7f3d}.s4{fill:#2ea043}
path{stroke:#ffffff}
}
</style>
`

// picture draws the map as an SVG that needs nothing else. Problems have a cross, too, not their colour alone.
func (m heatMap) picture(b *bytes.Buffer) {
	labels, cells := 0, 1
	for _, r := range m.rows {
		labels, cells = max(labels, len(r.from.String())), max(cells, len(r.cells))
	}
	left := svgMargin + int(math.Ceil(float64(labels)*svgChar)) + 8
	height := svgHead + len(m.rows)*svgCell + svgFoot
	title := "Pool " + m.pool
	width := max(left+cells*svgCell, svgMargin+textWidth(m.sum()), svgMargin+m.legendWidth()) + svgMargin
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(b, "<title>%s: %s</title>\n%s", escaped(title), m.sum(), svgStyle)
	svgText(b, svgMargin, 28, "title", title)
	svgText(b, svgMargin, 48, "", m.sum())
	for i, r := range m.rows {
		y := svgHead + i*svgCell
		svgText(b, svgMargin, y+svgCell-2, "", r.from.String())
		for j, c := range r.cells {
			m.svgCell(b, left+j*svgCell, y, c)
		}
	}
	m.svgLegend(b, height-svgMargin)
	b.WriteString("</svg>\n")
}

func (m heatMap) svgCell(b *bytes.Buffer, x, y int, c heatCell) {
	class := c.state()
	if class == cellNone {
		return
	}
	what := c.block.Addr().String()
	if !m.single {
		what = c.block.String()
		if n := c.shade(); n > 0 {
			class = fmt.Sprintf("s%d", n)
		}
	}
	if c.taken() == 0 {
		svgBox(b, x, y, class, "")
		return
	}
	switch {
	case m.single && c.who != "":
		what += " " + c.who
	case !m.single:
		what += fmt.Sprintf(": %d of %s taken", c.taken(), app.Count(int64(min(c.usable, math.MaxInt64))))
	}
	svgBox(b, x, y, class, what)
	if c.problems > 0 {
		svgCross(b, x, y)
	}
}

func svgBox(b *bytes.Buffer, x, y int, class, what string) {
	size := svgCell - 1
	fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="2"`, class, x, y, size, size)
	if what == "" {
		b.WriteString("/>\n")
		return
	}
	fmt.Fprintf(b, "><title>%s</title></rect>\n", escaped(what))
}

func svgCross(b *bytes.Buffer, x, y int) {
	fmt.Fprintf(b, `<path d="M%d %dl5 5m0-5l-5 5"/>`+"\n", x+2, y+2)
}

func svgText(b *bytes.Buffer, x, y int, class, text string) {
	fmt.Fprintf(b, `<text x="%d" y="%d"`, x, y)
	if class != "" {
		fmt.Fprintf(b, ` class="%s"`, class)
	}
	fmt.Fprintf(b, ">%s</text>\n", escaped(text))
}

// legendEntry is a kind of cell and what it means.
type legendEntry struct {
	class, text string
	cross       bool
}

func (m heatMap) svgEntries() []legendEntry {
	if m.single {
		entries := []legendEntry{
			{class: cellFree, text: "free"}, {class: cellReserved, text: "reserved"},
			{class: cellActive, text: "active"}, {class: cellProblem, text: "problem", cross: true},
		}
		if m.cooling > 0 {
			entries = append(entries, legendEntry{class: cellCooling, text: "cooling"})
		}
		return entries
	}
	return []legendEntry{
		{class: cellFree, text: fmt.Sprintf("/%d free", m.bits)}, {class: "s1", text: "up to 25 % taken"},
		{class: "s2", text: "50 %"}, {class: "s3", text: "75 %"}, {class: "s4", text: "100 %"},
		{class: cellFree, text: "with a problem", cross: true},
	}
}

// svgEntryGap is the room around the text of an entry of the legend.
const svgEntryGap = svgCell + 24

func textWidth(text string) int { return int(math.Ceil(float64(len(text)) * svgChar)) }

func (m heatMap) legendWidth() (width int) {
	for _, e := range m.svgEntries() {
		width += svgEntryGap + textWidth(e.text)
	}
	return width
}

func (m heatMap) svgLegend(b *bytes.Buffer, y int) {
	x := svgMargin
	for _, e := range m.svgEntries() {
		svgBox(b, x, y-svgCell+2, e.class, "")
		if e.cross {
			svgCross(b, x, y-svgCell+2)
		}
		svgText(b, x+svgCell+5, y, "", e.text)
		x += svgEntryGap + textWidth(e.text)
	}
}

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
	return b.String()
}

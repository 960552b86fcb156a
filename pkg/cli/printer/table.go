package printer

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// Column is one column of a table of Ts.
type Column[T any] struct {
	Name string
	// Wide columns are shown only by -o wide.
	Wide bool
	// Least is the initial width if rows are printed before all are known.
	Least int
	Cell  func(T) string
	// Whole is the unshortened text for comma-separated values; nil if Cell shortens nothing.
	Whole func(T) string
}

// visible returns the text of a cell with visible control characters.
func (c Column[T]) visible(row T) string { return terminal.Visible(c.Cell(row)) }

// Table prints rows in columns that are as wide as their cells, whatever the terminal.
type Table[T any] struct {
	Columns []Column[T]
	Headers bool
	// empty replaces emptyCell in cells without text.
	empty string
	// wide: wide columns are shown if one of their cells has a value. Without headers and in csv they are always shown,
	// because programs read these.
	wide, csv bool
}

// NewTable returns a table with the columns for the output.
func NewTable[T any](o *Output, columns []Column[T]) Table[T] {
	t := Table[T]{Headers: !o.noHeaders, wide: o.wide() && !o.CSV() && !o.noHeaders, csv: o.CSV()}
	for _, c := range columns {
		if t.csv && c.Whole != nil {
			c.Cell = c.Whole
		}
		if !c.Wide || o.wide() {
			t.Columns = append(t.Columns, c)
		}
	}
	return t
}

const (
	columnGap = "  "
	emptyCell = "-"
)

// Write prints a table; nothing if there are no rows, or only the headers as comma-separated values. It omits wide
// columns without a value.
func (t Table[T]) Write(w io.Writer, rows []T) error {
	if t.wide {
		t.Columns = slices.DeleteFunc(slices.Clone(t.Columns), func(c Column[T]) bool {
			return c.Wide && !slices.ContainsFunc(rows, func(row T) bool {
				text := c.Cell(row)
				return text != "" && text != "0"
			})
		})
	}
	return (&GrowingTable[T]{Table: t}).Write(w, rows)
}

// GrowingTable prints rows in parts. The headers come once, and columns never become narrower.
type GrowingTable[T any] struct {
	Table[T]
	widths []int
}

// Write prints rows; nothing if there are none, except the headers of comma-separated values.
func (t *GrowingTable[T]) Write(w io.Writer, rows []T) error {
	if len(rows) == 0 && (!t.csv || !t.Headers) {
		return nil
	}
	lines := make([][]string, 0, len(rows)+1)
	if t.Headers {
		lines, t.Headers = append(lines, t.names()), false
	}
	for _, row := range rows {
		cells := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			cells[i] = cmp.Or(c.visible(row), t.empty, emptyCell)
		}
		lines = append(lines, cells)
	}
	if t.csv {
		return WriteCSV(w, lines)
	}
	for _, cells := range lines {
		t.widen(func(i int) int { return twwidth.Width(cells[i]) })
	}
	return t.render(w, lines)
}

func (t *GrowingTable[T]) render(w io.Writer, lines [][]string) error {
	b := bufio.NewWriter(w)
	widths := tw.NewMapper[int, int]()
	for i, n := range t.widths {
		widths.Set(i, n+len(columnGap))
	}
	out := tablewriter.NewTable(&trimmer{w: b},
		tablewriter.WithEastAsian(tw.Off),
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{Lines: tw.LinesNone, Separators: tw.SeparatorsNone},
		})),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithPadding(tw.Padding{Right: columnGap, Overwrite: true}),
		tablewriter.WithColumnWidths(widths),
		tablewriter.WithStreaming(tw.StreamConfig{Enable: true}),
	)
	if err := out.Start(); err != nil {
		return err
	}
	for _, cells := range lines {
		if err := out.Append(cells); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return b.Flush()
}

// Begin sets the columns to the widths that later rows will probably need.
func (t *GrowingTable[T]) Begin() { t.widen(func(i int) int { return t.Columns[i].Least }) }

func (t *GrowingTable[T]) widen(to func(i int) int) {
	if t.widths == nil {
		t.widths = make([]int, len(t.Columns))
	}
	for i := range t.widths {
		t.widths[i] = max(t.widths[i], to(i))
	}
}

func (t *GrowingTable[T]) names() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// trimmer removes the blanks at the end of every line.
type trimmer struct {
	w       io.Writer
	pending []byte
}

func (t *trimmer) Write(p []byte) (int, error) {
	out := make([]byte, 0, len(t.pending)+len(p))
	for _, b := range p {
		switch b {
		case ' ':
			t.pending = append(t.pending, b)
			continue
		case '\n':
		default:
			out = append(out, t.pending...)
		}
		t.pending = t.pending[:0]
		out = append(out, b)
	}
	_, err := t.w.Write(out)
	return len(p), err
}

// leastCell is the minimum width to which Within shortens a cell.
const leastCell = 12

// Within returns a table that shortens the widest cells in the middle until a line fits into width. Beginning and end
// stay, because they distinguish names of pods. A line may still be too long.
func (t Table[T]) Within(width int, rows []T) Table[T] {
	widths := make([]int, len(t.Columns))
	total := -len(columnGap)
	for i, c := range t.Columns {
		if t.Headers {
			widths[i] = twwidth.Width(c.Name)
		}
		for _, row := range rows {
			widths[i] = max(widths[i], twwidth.Width(c.visible(row)))
		}
		total += widths[i] + len(columnGap)
	}
	for ; total > width; total-- {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if len(widths) == 0 || widths[widest] <= leastCell {
			break
		}
		widths[widest]--
	}
	out := t
	out.Columns = make([]Column[T], len(t.Columns))
	for i, c := range t.Columns {
		out.Columns[i] = c
		out.Columns[i].Cell = func(row T) string { return shortened(c.visible(row), widths[i]) }
	}
	return out
}

// shortened removes the middle of a text that is wider than a cell. It never cuts colours, because coloured cells are
// short.
func shortened(text string, width int) string {
	if twwidth.Width(text) <= width || strings.Contains(text, "\x1b") {
		return text
	}
	letters := []rune(text)
	keep := max(width-1, 2)
	if len(letters) <= keep {
		return text
	}
	return string(letters[:(keep+1)/2]) + "…" + string(letters[len(letters)-keep/2:])
}

// WriteCSV prints lines of cells as comma-separated values. It follows RFC 4180, but ends lines with LF.
func WriteCSV(w io.Writer, lines [][]string) error {
	out := csv.NewWriter(w)
	for _, cells := range lines {
		for i, cell := range cells {
			cells[i] = value(cell)
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// value returns a cell for programs: an empty text instead of a dash. It puts an apostrophe before a text that begins
// with =, +, - or @, because a spreadsheet would run that as a formula, and anybody may write owners and reasons.
// Spreadsheets do not show the apostrophe.
func value(cell string) string {
	if cell == emptyCell {
		return ""
	}
	if strings.IndexAny(cell, "=+-@\t\r＝＋－＠") != 0 {
		return cell
	}
	if _, err := strconv.ParseFloat(cell, 64); err == nil {
		return cell
	}
	return "'" + cell
}

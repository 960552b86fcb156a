package cli

import (
	"bufio"
	"cmp"
	"io"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// column is one column of a table of Ts.
type column[T any] struct {
	name string
	// wide columns are shown by -o wide only.
	wide bool
	// least is the width to begin with where rows are printed before all are known.
	least int
	cell  func(T) string
}

// table prints rows in columns of the width that they need, whatever the terminal.
type table[T any] struct {
	columns []column[T]
	headers bool
	// empty stands for a cell without text, instead of emptyCell.
	empty string
}

// newTable has the columns that the output asks for.
func newTable[T any](o *output, columns []column[T]) table[T] {
	t := table[T]{headers: !o.noHeaders}
	for _, c := range columns {
		if !c.wide || o.wide() {
			t.columns = append(t.columns, c)
		}
	}
	return t
}

const (
	columnGap = "  "
	emptyCell = "-"
)

// write prints a table, or nothing when there are no rows.
func (t table[T]) write(w io.Writer, rows []T) error {
	return (&growingTable[T]{table: t}).write(w, rows)
}

// growingTable prints rows that come in parts: the line of names comes once, and columns never become
// narrower.
type growingTable[T any] struct {
	table[T]
	widths []int
}

// write prints rows, or nothing when there are none.
func (t *growingTable[T]) write(w io.Writer, rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	lines := make([][]string, 0, len(rows)+1)
	if t.headers {
		lines, t.headers = append(lines, t.names()), false
	}
	for _, row := range rows {
		cells := make([]string, len(t.columns))
		for i, c := range t.columns {
			cells[i] = cmp.Or(c.cell(row), t.empty, emptyCell)
		}
		lines = append(lines, cells)
	}
	for _, cells := range lines {
		t.widen(func(i int) int { return twwidth.Width(cells[i]) })
	}
	return t.render(w, lines)
}

// render prints lines of cells.
func (t *growingTable[T]) render(w io.Writer, lines [][]string) error {
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

// begin gives the columns the widths that later rows will probably need.
func (t *growingTable[T]) begin() { t.widen(func(i int) int { return t.columns[i].least }) }

func (t *growingTable[T]) widen(to func(i int) int) {
	if t.widths == nil {
		t.widths = make([]int, len(t.columns))
	}
	for i := range t.widths {
		t.widths[i] = max(t.widths[i], to(i))
	}
}

func (t *growingTable[T]) names() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

// trimmer takes the blanks from the end of every line that passes.
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

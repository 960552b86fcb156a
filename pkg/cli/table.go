package cli

import (
	"bufio"
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
	cell func(T) string
}

// table prints rows in columns of the width that they need, whatever the terminal.
type table[T any] struct {
	columns []column[T]
	headers bool
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
	if len(rows) == 0 {
		return nil
	}
	buffer := bufio.NewWriter(w)
	out := tablewriter.NewTable(&trimmer{w: buffer},
		tablewriter.WithEastAsian(tw.Off),
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{Lines: tw.LinesNone, Separators: tw.SeparatorsNone},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off), tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone), tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithPadding(tw.Padding{Right: columnGap, Overwrite: true}),
		tablewriter.WithColumnWidths(t.widths(rows)),
		tablewriter.WithStreaming(tw.StreamConfig{Enable: true}),
	)
	if err := out.Start(); err != nil {
		return err
	}
	if t.headers {
		names := make([]string, len(t.columns))
		for i, c := range t.columns {
			names[i] = c.name
		}
		out.Header(names)
	}
	cells := make([]string, len(t.columns))
	for _, row := range rows {
		for i := range t.columns {
			cells[i] = t.cell(i, row)
		}
		if err := out.Append(cells); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return buffer.Flush()
}

// widths are those of the columns with their gap, in columns of the terminal.
func (t table[T]) widths(rows []T) tw.Mapper[int, int] {
	widths := tw.NewMapper[int, int]()
	for i, c := range t.columns {
		widest := 0
		if t.headers {
			widest = twwidth.Width(c.name)
		}
		for _, row := range rows {
			widest = max(widest, twwidth.Width(t.cell(i, row)))
		}
		widths.Set(i, widest+len(columnGap))
	}
	return widths
}

func (t table[T]) cell(i int, row T) string {
	if text := t.columns[i].cell(row); text != "" {
		return text
	}
	return emptyCell
}

package follow

import (
	"io"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// lines prints every change as a line, or as an object with -o.
type lines[T any] struct {
	output *printer.Output
	w      io.Writer
	table  *printer.GrowingTable[line[T]]
	// object prints an item if the output is not a table.
	object func(io.Writer, T) error
}

// line is one line of a watched list.
type line[T any] struct {
	kind watch.EventType // empty for items of the first list
	item T
}

// NewView returns the view of a watched list: a screen if standard output is a terminal and no object format is given,
// else lines.
func NewView[T any](
	s *app.App, o *printer.Output, columns []printer.Column[T], object func(io.Writer, T) error, note func([]T) string,
) View[T] {
	if s.Terminal.Tty && o.Printer == nil {
		return &screen[T]{
			w: terminal.Raw(s.Out), size: s.Terminal.Size, table: printer.NewTable(o, columns), note: note, now: s.Now,
		}
	}
	with := []printer.Column[line[T]]{{
		Name: "EVENT", Least: len(watch.Modified), Cell: func(e line[T]) string { return string(e.kind) },
	}}
	for _, c := range columns {
		with = append(with, printer.Column[line[T]]{
			Name: c.Name, Wide: c.Wide, Least: c.Least, Cell: func(e line[T]) string { return c.Cell(e.item) },
		})
	}
	return &lines[T]{
		output: o, w: s.Out, table: &printer.GrowingTable[line[T]]{Table: printer.NewTable(o, with)}, object: object,
	}
}

func (l *lines[T]) begin(all []T) error {
	l.table.Begin()
	rows := app.Map(all, func(item T) line[T] { return line[T]{item: item} })
	return l.print(rows)
}

func (l *lines[T]) change(kind watch.EventType, item T) error {
	return l.print([]line[T]{{kind: kind, item: item}})
}

func (l *lines[T]) Refresh(*Watched[T]) error { return nil }

func (l *lines[T]) print(rows []line[T]) error {
	if l.output.Printer == nil {
		return l.table.Write(l.w, rows)
	}
	for _, r := range rows {
		if err := l.object(l.w, r.item); err != nil {
			return err
		}
	}
	return nil
}

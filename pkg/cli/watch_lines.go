package cli

import (
	"io"

	"k8s.io/apimachinery/pkg/watch"
)

// lines shows every change as a line, or as an object where -o asks for them.
type lines[T any] struct {
	output *output
	w      io.Writer
	table  *growingTable[line[T]]
	// object prints an item where no table is asked for.
	object func(io.Writer, T) error
}

// line is one line of a list that is watched.
type line[T any] struct {
	kind watch.EventType // empty for what was there at first
	item T
}

// newView is what shows a watched list: the terminal or, where there is none or objects are asked for, lines.
func newView[T any](s *session, o *output, columns []column[T], object func(io.Writer, T) error, note func([]T) string) view[T] {
	if s.out.tty && o.printer == nil {
		return &screen[T]{w: s.Out, size: s.out.size, table: newTable(o, columns), note: note, now: s.now}
	}
	with := []column[line[T]]{{name: "EVENT", least: len(watch.Modified), cell: func(e line[T]) string { return string(e.kind) }}}
	for _, c := range columns {
		with = append(with, column[line[T]]{
			name: c.name, wide: c.wide, least: c.least, cell: func(e line[T]) string { return c.cell(e.item) },
		})
	}
	return &lines[T]{output: o, w: s.Out, table: &growingTable[line[T]]{table: newTable(o, with)}, object: object}
}

func (l *lines[T]) begin(all []T) error {
	l.table.begin()
	rows := make([]line[T], 0, len(all))
	for _, item := range all {
		rows = append(rows, line[T]{item: item})
	}
	return l.print(rows)
}

func (l *lines[T]) change(kind watch.EventType, item T) error {
	return l.print([]line[T]{{kind: kind, item: item}})
}

func (l *lines[T]) refresh(*watched[T]) error { return nil }

func (l *lines[T]) print(rows []line[T]) error {
	if l.output.printer == nil {
		return l.table.write(l.w, rows)
	}
	for _, r := range rows {
		if err := l.object(l.w, r.item); err != nil {
			return err
		}
	}
	return nil
}

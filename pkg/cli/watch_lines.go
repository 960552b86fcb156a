package cli

import (
	"io"

	"k8s.io/apimachinery/pkg/watch"
)

// lines shows every change as a line, or as an object where -o asks for them.
type lines[T any] struct {
	output *output
	w      io.Writer
	table  *growingTable[event[T]]
	// object prints an item where no table is asked for.
	object func(io.Writer, T) error
}

// event is a line of a list that is watched.
type event[T any] struct {
	kind watch.EventType // empty for what was there at first
	item T
}

// newView is what shows a watched list: the terminal or, where there is none or objects are asked for, lines.
func newView[T any](s *session, o *output, columns []column[T], object func(io.Writer, T) error, note func([]T) string) view[T] {
	if s.out.tty && o.printer == nil {
		return &screen[T]{w: s.Out, size: s.out.size, table: newTable(o, columns), note: note, now: s.now}
	}
	events := []column[event[T]]{{name: "EVENT", least: len(watch.Modified), cell: func(e event[T]) string { return string(e.kind) }}}
	for _, c := range columns {
		events = append(events, column[event[T]]{
			name: c.name, wide: c.wide, least: c.least, cell: func(e event[T]) string { return c.cell(e.item) },
		})
	}
	return &lines[T]{output: o, w: s.Out, table: &growingTable[event[T]]{table: newTable(o, events)}, object: object}
}

func (l *lines[T]) begin(all []T) error {
	l.table.begin()
	rows := make([]event[T], 0, len(all))
	for _, item := range all {
		rows = append(rows, event[T]{item: item})
	}
	return l.print(rows)
}

func (l *lines[T]) change(kind watch.EventType, item T) error {
	return l.print([]event[T]{{kind: kind, item: item}})
}

func (l *lines[T]) refresh(func() []T) error { return nil }

func (l *lines[T]) print(rows []event[T]) error {
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

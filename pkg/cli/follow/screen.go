package follow

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// screen draws a list again and again in the same place of a terminal. Between two drawings the terminal is in
// no special state: however the program ends, there is nothing to restore.
type screen[T any] struct {
	w     io.Writer
	size  func() (width, height int)
	table printer.Table[T]
	// note is the last line.
	note func([]T) string
	now  func() time.Time
	// drawn are the lines that are there, since when; changed says that they are out of date.
	drawn   int
	at      time.Time
	changed bool
}

// drawAnyway is how often a list is drawn without a change: ages go on.
const drawAnyway = 5 * time.Second

func (s *screen[T]) begin(all []T) error { return s.draw(all, func() []T { return all }) }

func (s *screen[T]) change(watch.EventType, T) error {
	s.changed = true
	return nil
}

func (s *screen[T]) Refresh(now *Watched[T]) error {
	if s.at.IsZero() || !s.changed && s.now().Sub(s.at) < drawAnyway {
		return nil
	}
	return s.draw(now.all(), now.latest)
}

// draw replaces what is there. Where the terminal has no room for all, what changed last comes first, and what is not
// shown is counted.
func (s *screen[T]) draw(all []T, latest func() []T) error {
	width, height := s.size()
	room := max(1, height-3) // names, note, and the line of the cursor
	shown, more := all, len(all)-room
	if more > 0 {
		shown = latest()[:room]
	}
	var b bytes.Buffer
	if err := s.table.Within(width, shown).Write(&b, shown); err != nil {
		return err
	}
	if more > 0 {
		fmt.Fprintf(&b, "%d more; ", more)
	}
	fmt.Fprintln(&b, terminal.Visible(s.note(all)))
	var out strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\r", s.drawn)
	}
	s.drawn = 0
	for line := range strings.Lines(b.String()) {
		out.WriteString(twwidth.Truncate(strings.TrimSuffix(line, "\n"), width) + "\x1b[K\n")
		s.drawn++
	}
	out.WriteString("\x1b[J")
	s.at, s.changed = s.now(), false
	_, err := io.WriteString(s.w, out.String())
	return err
}

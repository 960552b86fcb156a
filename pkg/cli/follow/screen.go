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

// screen draws a list repeatedly at the same place of a terminal. Between drawings the terminal is in its normal state,
// so nothing needs to be restored when the program ends.
type screen[T any] struct {
	w     io.Writer
	size  func() (width, height int)
	table printer.Table[T]
	// note is the last line.
	note func([]T) string
	now  func() time.Time
	// drawn is the number of lines on the screen, at the time of drawing. changed means that they are out of date.
	drawn   int
	at      time.Time
	changed bool
}

// drawAnyway is the drawing interval without changes, because ages change.
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

// draw replaces the list on the screen. If there are too many lines, it draws the latest changes and counts the rest.
func (s *screen[T]) draw(all []T, latest func() []T) error {
	width, height := s.size()
	room := max(1, height-3) // without the heading, the note and the cursor's line
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

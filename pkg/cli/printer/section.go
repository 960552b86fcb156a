package printer

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// Section writes lines under a title; nothing if there are none.
func Section(b *bytes.Buffer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, line := range lines {
		b.WriteString(terminal.Visible(line) + "\n")
	}
}

// Line writes a line with a label of the given width. It makes control characters visible.
func Line(b *bytes.Buffer, width int, label, text string) {
	fmt.Fprintf(b, "%-*s %s\n", width, label, terminal.Visible(text))
}

// Indented prints a table as a section; nothing if it has no rows.
func Indented[T any](b *bytes.Buffer, title string, t Table[T], rows []T) error {
	var text bytes.Buffer
	if err := t.Write(&text, rows); err != nil || len(rows) == 0 {
		return err
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for line := range strings.Lines(text.String()) {
		b.WriteString("  " + line)
	}
	return nil
}

// OrNone returns a text, or "none" if it is empty.
func OrNone(text string) string { return cmp.Or(text, "none") }

package printer

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// Branch is a node of a tree: its name, and a text about it.
type Branch struct {
	Name, About string
	Under       []Branch
}

// Strokes are the lines of a tree.
type Strokes struct{ fork, last, pass, none string }

// StrokesOf returns the strokes for a terminal's character set.
func StrokesOf(t terminal.Terminal) Strokes {
	if t.Utf8 {
		return Strokes{"├── ", "└── ", "│   ", "    "}
	}
	return Strokes{"|-- ", "`-- ", "|   ", "    "}
}

// DrawTree draws trees down to a depth; 0 means no bound. Sibling names share a column.
func DrawTree(b *bytes.Buffer, trees []Branch, s Strokes, depth int) {
	width := widest(trees)
	for _, t := range trees {
		b.WriteString(terminal.Visible(label(t, width)) + "\n")
		drawUnder(b, t.Under, s, "", depth-1)
	}
}

func drawUnder(b *bytes.Buffer, branches []Branch, s Strokes, before string, depth int) {
	if depth == 0 {
		return
	}
	width := widest(branches)
	for i, one := range branches {
		joint, next := s.fork, s.pass
		if i == len(branches)-1 {
			joint, next = s.last, s.none
		}
		b.WriteString(before + joint + terminal.Visible(label(one, width)) + "\n")
		drawUnder(b, one.Under, s, before+next, depth-1)
	}
}

func widest(all []Branch) (width int) {
	for _, one := range all {
		if one.About != "" {
			width = max(width, len(one.Name))
		}
	}
	return width
}

func label(one Branch, width int) string {
	if one.About == "" {
		return one.Name
	}
	return one.Name + strings.Repeat(" ", max(0, width-len(one.Name))) + columnGap + one.About
}

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

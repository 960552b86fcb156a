package view

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Fact is a line about an object. Without a label it continues the previous one.
type Fact struct {
	Label, Text string
	// Color is the colour of a state; else empty.
	Color terminal.Color
}

// Facts describe one object, the most important first.
type Facts []Fact

func (f *Facts) add(label, format string, args ...any) {
	*f = append(*f, Fact{Label: label, Text: fmt.Sprintf(format, args...)})
}

// paint adds the coloured state of the object.
func (f *Facts) paint(state string, color terminal.Color) {
	*f = append(*f, Fact{"State", state, color})
}

// Write prints one fact per line, with labels in a column of the given width.
func (f Facts) Write(b *bytes.Buffer, s *app.App, width int) {
	for _, one := range f {
		label := one.Label
		if label != "" {
			label += ":"
		}
		text := one.Text
		if one.Color != "" {
			text = s.Terminal.Paint(one.Color, text)
		}
		printer.Line(b, width, label, text)
	}
}

// Step is a next step. Command may be empty.
type Step struct{ What, Command string }

// Steps has the next steps.
type Steps []Step

func (n *Steps) add(what, command string) { *n = append(*n, Step{what, command}) }

// hint adds a hint: a step for each command at the end of a part of it. A step that only lists comes last, and one that
// is there already is not added again.
func (n *Steps) hint(text string) {
	var steps Steps
	part := ""
	for one := range strings.SplitSeq(text, "; ") {
		if part != "" {
			one = part + "; " + one
		}
		what, command, found := strings.Cut(one, ": "+app.ProgramName+" ")
		if part = one; found {
			steps.add(what, app.ProgramName+" "+command)
			part = ""
		}
	}
	if part != "" {
		steps.add(part, "")
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return ipam.FalseFirst(a.lists(), b.lists()) })
	for _, one := range steps {
		if !slices.Contains(*n, one) {
			*n = append(*n, one)
		}
	}
}

// lists reports whether a step only lists addresses.
func (s Step) lists() bool { return strings.HasPrefix(s.Command, app.ProgramName+" ip list ") }

// Write prints the steps as a section; nothing if there are none.
func (n Steps) Write(b *bytes.Buffer, s *app.App) {
	var lines []string
	for _, one := range n {
		line := "  " + one.What
		if one.Command != "" {
			line += ": " + s.Called(one.Command)
		}
		lines = append(lines, line)
	}
	printer.Section(b, "Next", lines)
}

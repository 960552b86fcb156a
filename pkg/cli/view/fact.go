package view

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// Fact is one thing that is so. Without a label it goes on about the fact before.
type Fact struct {
	Label, Text string
	// Color is that of a state; empty for others.
	Color terminal.Color
}

// Facts describe one object, the most important first.
type Facts []Fact

func (f *Facts) add(label, format string, args ...any) {
	*f = append(*f, Fact{Label: label, Text: fmt.Sprintf(format, args...)})
}

// paint adds the state of the object.
func (f *Facts) paint(state string, color terminal.Color) {
	*f = append(*f, Fact{"State", state, color})
}

// Write prints facts, a line each, with labels in a column of some width.
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

// Step is something to do next. Without a command What says it all.
type Step struct{ What, Command string }

// Steps are what to do next.
type Steps []Step

func (n *Steps) add(what, command string) { *n = append(*n, Step{what, command}) }

// hint adds what a hint says, which may end in a command.
func (n *Steps) hint(text string) {
	what, command, found := strings.Cut(text, ": "+app.ProgramName+" ")
	if found {
		command = app.ProgramName + " " + command
	}
	n.add(what, command)
}

// Write prints steps as a section, or nothing where there are none.
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

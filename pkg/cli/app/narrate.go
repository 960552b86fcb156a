package app

import (
	"fmt"
	"io"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// Narrator prints progress on standard error. Every line begins with a mark, so that colour is never the only sign.
// terminal.Visible keeps a message on one line.
type Narrator struct {
	W        io.Writer
	Terminal terminal.Terminal
	// dry supplies the suffix of messages about completed work.
	dry *DryRun
}

// Start prints what the command is about to do.
func (n *Narrator) Start(format string, args ...any) {
	n.Line(terminal.Cyan, "►", ">", format, args...)
}

// Wait prints what is waited for.
func (n *Narrator) Wait(format string, args ...any) {
	n.Line(terminal.Cyan, "◎", "*", format, args...)
}

// WaitLater prints what the command waits for, after one second and only on a terminal. The caller must call done when
// the wait is over.
func (n *Narrator) WaitLater(what string) (done func()) {
	if !n.Terminal.Tty {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		timer := time.NewTimer(time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
			n.Wait("%s", what)
		case <-stop:
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// Done prints what was done or, in a dry run, what would have been done.
func (n *Narrator) Done(format string, args ...any) {
	n.Line(terminal.Green, "✔", "+", "%s%s", fmt.Sprintf(format, args...), n.dry.suffix())
}

func (n *Narrator) fail(format string, args ...any) {
	n.Line(terminal.Red, "✗", "x", format, args...)
}

// Warn prints something that the user may not expect.
func (n *Narrator) Warn(format string, args ...any) {
	n.Line(terminal.Yellow, "!", "!", format, args...)
}

// Note prints a remark without a mark.
func (n *Narrator) Note(format string, args ...any) {
	fmt.Fprintln(n.W, terminal.Visible(fmt.Sprintf(format, args...)))
}

// Line prints a line after a coloured mark. If the terminal has no UTF-8, the mark is plain.
func (n *Narrator) Line(c terminal.Color, mark, plain, format string, args ...any) {
	if !n.Terminal.Utf8 {
		mark = plain
	}
	fmt.Fprintf(n.W, "%s %s\n", n.Terminal.Paint(c, mark), terminal.Visible(fmt.Sprintf(format, args...)))
}

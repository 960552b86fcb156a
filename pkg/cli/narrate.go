package cli

import (
	"fmt"
	"io"
)

// narrator tells on standard error what happens. Every line begins with a mark, so that colour is
// never the only sign.
type narrator struct {
	w    io.Writer
	term terminal
	// dry is put behind what is said to be done.
	dry *dryRun
}

// start says what is about to happen.
func (n *narrator) start(format string, args ...any) { n.line(cyan, "►", ">", format, args...) }

// wait says what is waited for.
func (n *narrator) wait(format string, args ...any) { n.line(cyan, "◎", "*", format, args...) }

// done says what was done, or would have been.
func (n *narrator) done(format string, args ...any) {
	n.line(green, "✔", "+", "%s%s", fmt.Sprintf(format, args...), n.dry.suffix())
}

// fail says what was not done.
func (n *narrator) fail(format string, args ...any) { n.line(red, "✗", "x", format, args...) }

// warn says what the user may not expect.
func (n *narrator) warn(format string, args ...any) { n.line(yellow, "!", "!", format, args...) }

// note says something by the way.
func (n *narrator) note(format string, args ...any) {
	fmt.Fprintf(n.w, format+"\n", args...)
}

func (n *narrator) line(c color, mark, plain, format string, args ...any) {
	if !n.term.utf8 {
		mark = plain
	}
	fmt.Fprintf(n.w, "%s %s\n", n.term.paint(c, mark), fmt.Sprintf(format, args...))
}
